"""The machine while steps ran, out of its samples.

Counters become rates between the first and the last sample inside the steps of the trainers; what
is a value of the moment is taken at its highest (memory) or averaged (GPU). Keys of a sample are
those of ``machine.sampler``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hotlap.account.missing import Missing
from hotlap.account.run_phases import last_tick_ns
from hotlap.values.record import Process, Record
from hotlap.values.summary import MachineSummary

Sample = dict[str, Any]

MOMENTS: Final = ("busy_share", "memory_busy_share", "sm_clock_hz", "power_mw", "temperature_c")
"""Values of a GPU that are averaged over samples."""


def summarise_machine(
    record: Record, trainers: Sequence[Process], missing: Missing
) -> MachineSummary:
    """Return what the machine did while the trainers stepped.

    Without two samples there is no rate: everything but facts is None, with the reason.
    """
    facts = machine_facts(record)
    allowed, visible = facts.get("cores_allowed"), facts.get("cores_visible")
    samples = _during_steps(record.samples, trainers)
    if len(samples) < 2:
        missing.note(
            "machine while steps ran",
            f"a rate takes two samples, and {len(samples) or 'none'} fell into the steps",
        )
        return MachineSummary(facts, allowed, visible, samples=len(samples))
    rates = _Rates(samples[0], samples[-1])
    cores = _cores(rates, facts)
    busy = _cpu_share(cores, rates, facts)
    if busy is None:
        missing.note("CPU utilisation", "the kernel tells no busy time of the cores allowed")
    if not any(sample.get("gpus") for sample in samples):
        missing.note("GPU utilisation", facts.get("gpus_absent") or "no GPU was seen")
    return MachineSummary(
        facts=facts,
        cores_allowed=allowed,
        cores_visible=visible,
        cpu_share=busy,
        busiest_core_share=max(cores, default=None),
        tree_rss_bytes=_highest(samples, "tree_rss_bytes"),
        disk_read_bytes_per_s=rates.per_s("disk_read_bytes"),
        disk_write_bytes_per_s=rates.per_s("disk_write_bytes"),
        net_bytes_per_s=rates.per_s("net_bytes"),
        pressure=_pressure(rates),
        throttled_share=_throttled(rates),
        swap_in_bytes_per_s=rates.per_s("swap_in_bytes"),
        shm_free_bytes=_lowest(samples, "shm_free_bytes"),
        gpus=_gpus(samples, facts),
        samples=len(samples),
        others_cpu_share=_others(busy, cores, rates),
    )


def machine_facts(record: Record) -> dict[str, Any]:
    """Return what stayed the same during the run; empty when it was not recorded.

    It stands in the record, or in the first sample.
    """
    if record.facts:
        return record.facts
    for sample in record.samples:
        if isinstance(sample.get("facts"), dict):
            return dict(sample["facts"])
    return {}


class _Rates:
    """Differences of counters between two samples."""

    def __init__(self, first: Sample, last: Sample) -> None:
        self._first, self._last = first, last
        self.span_ns: int = last["at_ns"] - first["at_ns"]

    def delta(self, name: str) -> int | None:
        """Return how much a counter grew; None when it is unknown, or when it fell."""
        return _grown(self._first.get(name), self._last.get(name))

    def per_s(self, name: str) -> float | None:
        """Return how much a counter grew in a second."""
        grown = self.delta(name)
        return None if grown is None or self.span_ns <= 0 else grown / (self.span_ns / 1e9)

    def pair(self, name: str) -> tuple[Any, Any]:
        """Return the value of a key at the beginning and at the end."""
        return self._first.get(name), self._last.get(name)


def _grown(before: Any, after: Any) -> int | None:
    if before is None or after is None or after < before:
        return None
    return int(after - before)


def _during_steps(samples: Sequence[Sample], trainers: Sequence[Process]) -> list[Sample]:
    begins = [one.first_step_ns for one in trainers if one.first_step_ns is not None]
    ends = [end for one in trainers if (end := last_tick_ns(one)) is not None]
    if not begins or not ends:
        return []
    return [one for one in samples if min(begins) <= one.get("at_ns", -1) <= max(ends)]


def _cores(rates: _Rates, facts: dict[str, Any]) -> list[float]:
    """Return the busy share of each core that the run may use."""
    before, after = rates.pair("cores_busy_ns")
    if not before or not after or len(before) != len(after) or rates.span_ns <= 0:
        return []
    allowed = facts.get("cpus") or range(len(before))
    grown = [_grown(before[at], after[at]) for at in allowed if at < len(before)]
    return [min(1.0, one / rates.span_ns) for one in grown if one is not None]


def _cpu_share(cores: list[float], rates: _Rates, facts: dict[str, Any]) -> float | None:
    """Return how much of the CPU time allowed was used.

    By anybody, since a neighbour on the same cores takes from us too; under a quota, which is
    for us alone, by our own processes.
    """
    quota = facts.get("cores_quota")
    if quota and quota < (facts.get("cores_affinity") or quota + 1):
        used = rates.per_s("tree_cpu_ns")
        return None if used is None else min(1.0, used / 1e9 / quota)
    return sum(cores) / len(cores) if cores else None


def _others(busy: float | None, cores: list[float], rates: _Rates) -> float | None:
    """Return what of the busy share of the cores allowed was not ours; None when not known.

    Our own part is the CPU time of the command's process tree. It may have run on cores outside
    of those allowed to us only by a change of affinity, so the difference is floored at 0.
    """
    own = rates.per_s("tree_cpu_ns")
    if busy is None or own is None or not cores:
        return None
    return max(0.0, sum(cores) / len(cores) - own / 1e9 / len(cores))


def _pressure(rates: _Rates) -> dict[str, float | None]:
    """Return the share of time in which some or all tasks were stalled, by resource."""
    before, after = rates.pair("psi")
    if not before or not after or rates.span_ns <= 0:
        return {}
    found: dict[str, float | None] = {}
    for name, value in before.items():
        grown = _grown(value, after.get(name))
        found[name.removesuffix("_ns")] = None if grown is None else grown / rates.span_ns
    return found


def _throttled(rates: _Rates) -> float | None:
    """Return the share of quota periods in which the run was stopped."""
    periods, stopped = rates.delta("periods"), rates.delta("throttled_periods")
    if periods is None or stopped is None:
        return None
    return stopped / periods if periods else 0.0


def _highest(samples: Sequence[Sample], name: str) -> int | None:
    return max((s[name] for s in samples if s.get(name) is not None), default=None)


def _lowest(samples: Sequence[Sample], name: str) -> int | None:
    return min((s[name] for s in samples if s.get(name) is not None), default=None)


def _gpus(samples: Sequence[Sample], facts: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return each GPU's means over samples, its highest use of memory, and its name."""
    names = {gpu.get("index"): gpu.get("name") for gpu in facts.get("gpus") or ()}
    seen: dict[int, list[Sample]] = {}
    for sample in samples:
        for gpu in sample.get("gpus") or ():
            seen.setdefault(gpu["index"], []).append(gpu)
    found = []
    for index, readings in sorted(seen.items()):
        mean: dict[str, Any] = {"index": index, "name": names.get(index)}
        for moment in MOMENTS:
            told = [one[moment] for one in readings if one.get(moment) is not None]
            mean[moment] = sum(told) / len(told) if told else None
        mean["memory_used_bytes"] = _highest(readings, "memory_used_bytes")
        mean["memory_total_bytes"] = _highest(readings, "memory_total_bytes")
        mean["others"] = _highest(readings, "others")
        reasons = {word for one in readings for word in one.get("throttled_by") or ()}
        mean["throttled_by"] = sorted(reasons)
        found.append(mean)
    return tuple(found)
