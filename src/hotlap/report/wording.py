"""A diagnosis in words: gains, evidence, places, remedies."""

from __future__ import annotations

import math
from typing import Any, Final

from hotlap.report.readable import readable
from hotlap.report.sections import NAMES, sentence
from hotlap.report.units import UNKNOWN, digits, duration, share, size, speed
from hotlap.values.finding import Bounds, Evidence, Finding, Location
from hotlap.values.summary import MachineSummary, RunSummary

BOUNDS_SAID: Final = {
    "input": "input",
    "compute": "compute",
    "host": "host code",
    "communication": "communication",
    "memory": "memory",
    "balanced": "several parts alike",
    "unknown": "not known",
}
"""What the training is bound by, in words."""

SCOPES: Final = {"step": "in every step", "epoch": "once per epoch", "run": "once per run"}

REMEDIES: Final = {
    "knob": "a setting",
    "code": "a change of the code",
    "environment": "a change of the environment",
}

DISTURBING: Final = 0.05
"""Share of the cores in other hands, or of throttled periods, that is worth a word."""

_NO_GAIN: Final = 1.005
"""Below this a ratio of two digits reads as 1.00."""


def gain(bounds: Bounds) -> str:
    """Return a predicted speed-up: ``1.50 to 1.70 times as fast``."""
    low, high = _finite(bounds.low), _finite(bounds.high)
    if low is None and high is None:
        return "gain not known"
    if high is None:
        return f"at least {low:.2f} times as fast"
    if high < _NO_GAIN:
        return "no gain in sight"
    if low is None or low < _NO_GAIN:
        return f"up to {high:.2f} times as fast"
    if f"{low:.2f}" == f"{high:.2f}":
        return f"{low:.2f} times as fast"
    return f"{low:.2f} to {high:.2f} times as fast"


def recoverable(bounds: Bounds, whole: str) -> str:
    """Return a recoverable share: ``33 % to 41 % of the run``. whole: what it is a share of."""
    low, high = _finite(bounds.low), _finite(bounds.high)
    if low is None and high is None:
        return f"an unknown part of {whole}"
    if high is None:
        return f"at least {share(low)} of {whole}"
    if not low:
        return f"up to {share(high)} of {whole}"
    if share(low) == share(high):
        return f"{share(low)} of {whole}"
    return f"{share(low)} to {share(high)} of {whole}"


def whole_of(summary: RunSummary) -> str:
    """Return what the shares of findings are shares of: the run, or its steps alone."""
    return "the steps" if summary.horizon_steps is None else "the run"


def figure(value: Any, unit: str) -> str:
    """Return a figure of evidence with its unit; None reads ``not measured``."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        formed = _of_unit(float(value), unit)
        if formed is not None:
            return formed
        number = f"{value:,}" if isinstance(value, int) else digits(value)
        return readable(f"{number} {unit}".strip())
    return readable(f"{_listed(value)} {unit}".strip())


def _of_unit(value: float, unit: str) -> str | None:
    """Return the figure in the form that reads best for its unit, None for any other unit."""
    if unit == "ns":
        return duration(value)
    if unit == "ns per step":
        return f"{duration(value)} per step"
    if unit == "share" or unit.startswith("share of "):
        signed = share(value) if value >= 0 else f"-{share(-value)}"
        return f"{signed}{unit.removeprefix('share')}"
    if unit == "us":
        return f"{digits(value)} µs"
    if unit == "bytes":
        return size(value)
    if unit == "bytes/s":
        return speed(value)
    return None


def _listed(value: Any) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(str, value))
    return str(value)


def evidence_line(evidence: tuple[Evidence, ...]) -> str:
    """Return all evidence in one line: ``CPU of a batch: 61 %; waiting: 6.01 ms``."""
    said = [f"{readable(one.name)}: {figure(one.value, one.unit)}" for one in evidence]
    return "; ".join(said)


def place(location: Location) -> str:
    """Return ``train.py:42``."""
    return readable(f"{location.file}:{location.line}")


def place_in_full(location: Location) -> str:
    """Return ``train.py:42 in load, 61 % of it``."""
    inside = f" in {readable(location.function)}" if location.function else ""
    part = "" if location.share is None else f", {share(location.share)} of it"
    return f"{place(location)}{inside}{part}"


def phase_name(phase: str) -> str:
    """Return how a phase of a finding is called in text."""
    return NAMES.get(phase, phase.replace("_", " "))


def remedy(finding: Finding) -> str:
    """Return what is to be changed, in one phrase: ``a setting (loader_workers)``."""
    kind = REMEDIES.get(finding.remedy.kind, finding.remedy.kind)
    knobs = f" ({', '.join(finding.remedy.knobs)})" if finding.remedy.knobs else ""
    return f"{kind}{knobs}"


def noise(floor: float | None) -> str | None:
    """Return the noise floor in a sentence; None when it was not measured."""
    if floor is None or not math.isfinite(floor):
        return None
    return (
        f"Two equal stretches of this training differed by up to {share(floor)} here and now; "
        "smaller differences cannot be told apart."
    )


def busy(machine: MachineSummary) -> str:
    """Return what disturbed the machine while steps ran, in a sentence; empty where nothing did."""
    said = []
    if machine.others_cpu_share is not None and machine.others_cpu_share >= DISTURBING:
        said.append(f"other programs used {share(machine.others_cpu_share)} of the cores")
    if machine.throttled_share is not None and machine.throttled_share >= DISTURBING:
        part = share(machine.throttled_share)
        said.append(f"the CPU quota held the training back in {part} of its periods")
    shared = [str(gpu["index"]) for gpu in machine.gpus if gpu.get("others")]
    if shared:
        said.append(f"other programs computed on GPU {', '.join(shared)} as well")
    listed = " and ".join(filter(None, (", ".join(said[:-1]), *said[-1:])))
    return sentence(f"Meanwhile {listed}") if said else ""


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
