"""What the page of a diagnosis says, as plain tables of words for its template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hotlap.report.charts import top_of
from hotlap.report.epoch_end import epoch_end_words
from hotlap.report.excerpt import Shown, cut, excerpt
from hotlap.report.experiments import trial_views
from hotlap.report.limits import limits, storage_rates
from hotlap.report.operators_chart import MOST as MOST_OPERATORS
from hotlap.report.operators_chart import operator_times
from hotlap.report.profile_chart import LineTime, line_times, phase_said
from hotlap.report.sections import NAMES, SMALL, outcome, sentence
from hotlap.report.units import UNKNOWN, digits, duration, many, share, size
from hotlap.report.unmeasured import NAMED, by_reason, not_measured
from hotlap.report.wording import (
    BOUNDS_SAID,
    SCOPES,
    busy,
    figure,
    gain,
    noise,
    phase_name,
    place,
    recoverable,
    remedy,
    whole_of,
)
from hotlap.values.facts import Facts, Measured, Missing, WhatIf
from hotlap.values.finding import Bounds, Diagnosis, Finding, Location
from hotlap.values.phase import RUN_PHASES, STEP_PHASES
from hotlap.values.shares import training_rate
from hotlap.values.summary import Part, ProcessSummary

MOST_PLACES: Final = 6
MOST_ROWS: Final = 15
"""Lines of the profile that are told in a table."""


class Tile(NamedTuple):
    """One figure that the top of the page shows."""

    name: str
    value: str
    note: str


class PlaceView(NamedTuple):
    """A place of a finding with what is known of the source around it."""

    where: str
    function: str
    share: str
    lines: list[Shown]


class FindingView(NamedTuple):
    """A finding in words. evidence: rows of name and figure."""

    number: int
    code: str
    name: str
    severity: str
    status: str
    gain: str
    say: str
    phase: str
    costs: str
    places: list[PlaceView]
    evidence: list[tuple[str, str]]
    remedy: str
    changes: str


def view(facts: Facts, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return everything that the page says beside its charts.

    Each value is text, or holds nothing but text, numbers that count, and truth values; nothing
    of it is escaped.
    """
    run = facts.run
    return {
        "command": run.command,
        "id": run.id,
        "started": run.started.replace("T", " "),
        "version": run.hotlap_version,
        "outcome": outcome(run),
        "whole_run": facts.whole_run,
        "whole_of": whole_of(run),
        "absence": sentence(run.absence) if run.absence else "",
        "headline": sentence(diagnosis.headline),
        "bound": diagnosis.bound,
        "bound_said": BOUNDS_SAID.get(diagnosis.bound, diagnosis.bound),
        "together": gain(diagnosis.together) if len(diagnosis.findings) > 1 else "",
        "next_ceiling": sentence(diagnosis.next_ceiling) if diagnosis.next_ceiling else "",
        "noise": noise(diagnosis.noise_floor),
        "busy": busy(run.machine),
        "tiles": _tiles(facts, diagnosis),
        "findings": [
            _finding(facts, one, at) for at, one in enumerate(diagnosis.findings, start=1)
        ],
        "step_parts": _parts(_step_phases(facts), STEP_PHASES),
        "run_parts": _parts(run.phases, RUN_PHASES),
        "epoch_end": epoch_end_words(facts),
        "ceilings": _ceilings(facts),
        "curve": _curve(facts),
        "profiles": list(_profiles(facts)),
        "profile_origin": "" if isinstance(facts.profile, Missing) else facts.profile.origin,
        "operators": list(_operators(facts)),
        "left_out": _left_out(facts),
        "trials": trial_views(facts.trials),
        "what_ifs": [_what_if(tried) for tried in facts.what_ifs],
        "missing": missing(not_measured(facts, diagnosis)),
        "machine": list(_machine(facts)),
    }


def _step_phases(facts: Facts) -> Mapping[str, Part]:
    trainers = facts.run.trainers
    return trainers[0].step.phases if trainers else {}


def _tiles(facts: Facts, diagnosis: Diagnosis) -> list[Tile]:
    tiles = []
    if facts.run.trainers and facts.run.trainers[0].step.median_ns is not None:
        step = facts.run.trainers[0].step
        spread = f"8 of 10 from {duration(step.p10_ns)} to {duration(step.p90_ns)}"
        tiles.append(Tile("one step", duration(step.median_ns), spread))
    rate = training_rate(facts)
    if rate is not None:
        tiles.append(Tile("samples per second", digits(rate), "as the training stands"))
    if facts.run.wall_ns is not None:
        steps = many(sum(one.step.steps for one in facts.run.trainers[:1]), "step")
        watched = "the whole run" if facts.whole_run else "what was watched of it"
        tiles.append(Tile(watched, duration(facts.run.wall_ns), steps))
    best = diagnosis.together if len(diagnosis.findings) > 1 else None
    if best is None and diagnosis.findings:
        best = diagnosis.findings[0].predicted_speedup
    if best is not None and best.high is not None:
        what = "with every finding mended" if len(diagnosis.findings) > 1 else "with it mended"
        tiles.append(Tile("predicted", _short(best), what))
    return tiles


def _short(bounds: Bounds) -> str:
    """Return a speed-up for a tile: ``1.52-1.71`` with the sign for times."""
    words = gain(bounds).removesuffix(" times as fast")
    if not words[-1].isdigit():
        return words
    return f"{words.replace(' to ', '-')} \N{MULTIPLICATION SIGN}"


def _finding(facts: Facts, finding: Finding, number: int) -> FindingView:
    scope = SCOPES.get(finding.scope, finding.scope)
    return FindingView(
        number=number,
        code=finding.code,
        name=finding.name,
        severity=finding.severity,
        status=finding.status,
        gain=gain(finding.predicted_speedup),
        say=sentence(finding.say),
        phase=phase_name(finding.phase),
        costs=f"{recoverable(finding.recoverable_share, whole_of(facts.run))}, {scope}",
        places=[_place(facts, location) for location in finding.locations[:MOST_PLACES]],
        evidence=[(one.name, figure(one.value, one.unit)) for one in finding.evidence],
        remedy=remedy(finding),
        changes=sentence(finding.remedy.changes or "nothing but the speed"),
    )


def _place(facts: Facts, location: Location) -> PlaceView:
    part = "" if location.share is None else f"{share(location.share)} of its time"
    return PlaceView(place(location), location.function, part, excerpt(facts, location))


def _parts(phases: Mapping[str, Part], order: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return rows of name, share and time for the parts that took any."""
    return [
        (NAMES[name], share(phases[name].share), duration(phases[name].ns))
        for name in order
        if name in phases and phases[name].ns
    ]


def _ceilings(facts: Facts) -> list[tuple[str, str, str, str]]:
    """Return rows of name, rate with interval, what it is, and where it comes from."""
    rows = []
    for limit in limits(facts):
        rate = UNKNOWN if limit.rate is None else digits(limit.rate)
        if limit.low is not None and limit.high is not None:
            rate += f" ({digits(limit.low)} to {digits(limit.high)})"
        rows.append((limit.name, rate, limit.says, limit.because or limit.origin))
    found = storage_rates(facts)
    if found is not None and isinstance(facts.storage, Measured):
        says = f"the same {many(found.samples, 'sample')} by one reader, waiting "
        for name, rate_of, waits in (
            ("cold", found.cold, found.cold_blocked),
            ("warm", found.warm, found.warm_blocked),
        ):
            origin = f"{says}{share(waits)} of the time"
            rows.append((f"storage, {name}", digits(rate_of), origin, facts.storage.origin))
    return rows


def _curve(facts: Facts) -> list[tuple[str, str, str]]:
    points = sorted(facts.curve, key=lambda point: point.workers)
    return [
        (str(point.workers), digits(point.per_s), f"{digits(point.low)} to {digits(point.high)}")
        for point in points
    ]


def _profiles(facts: Facts) -> Iterator[tuple[str, str, list[tuple[str, ...]], str]]:
    """Yield for each role its name, a title, the rows of its lines, and how many are not shown."""
    for role, title in (("trainer", "The training thread"), ("worker", "Loader workers")):
        lines = line_times(facts, role)
        shown = [line for line in lines if line.share >= SMALL][:MOST_ROWS]
        rest = sum(line.share for line in lines[len(shown) :])
        small = f"{many(len(lines) - len(shown), 'more line')}: {share(rest)} together"
        if lines:
            yield role, title, [_line(line) for line in shown], small if rest else ""


def _line(time: LineTime) -> tuple[str, str, str, str, str]:
    """Return a row of place, source text, phase, share, and what the thread did there."""
    states = (
        ("on a core", time.working),
        ("blocked", time.blocked),
        ("waiting for a core", time.runqueue),
    )
    known = [(name, part / time.share) for name, part in states if part is not None and time.share]
    did = ", ".join(f"{name} {share(part)}" for name, part in known if part >= SMALL)
    where = time.place or "outside of the user's files"
    return where, cut(time.text), phase_said(time.phase), share(time.share), did or UNKNOWN


def _operators(facts: Facts) -> Iterator[tuple[str, ...]]:
    """Yield rows of operator, calls a step, time a step, share, input types, and a line."""
    for one in operator_times(facts)[:MOST_OPERATORS]:
        types = ", ".join(one.dtypes) or UNKNOWN
        where = one.place or "outside of the user's files"
        yield one.name, digits(one.calls), duration(one.ns), share(one.share), types, where


def _left_out(facts: Facts) -> str:
    """Return how many steps lie above the chart of the course, in words; empty when none do."""
    if not facts.step_series:
        return ""
    above = [ns for ns in facts.step_series if ns > top_of(facts.step_series)]
    if not above:
        return ""
    longest = duration(max(above))
    lies = "lies" if len(above) == 1 else "lie"
    return f"{many(len(above), 'step')} {lies} above the chart, the longest at {longest}."


def _what_if(tried: WhatIf) -> tuple[str, str, str]:
    """Return what was changed, the ratio, and what that says."""
    ratio = f"{tried.ratio:.2f} ({tried.low:.2f} to {tried.high:.2f})"
    if not tried.acted:
        said = "the change did not take effect"
    elif tried.low > 1.0:
        said = "faster"
    elif tried.high < 1.0:
        said = "slower"
    else:
        said = "no difference that stands out of the noise"
    return f"{tried.change.replace('_', ' ')} = {tried.value}", ratio, said


def missing(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return rows of what was not measured and the reason that these things share."""
    return [
        (", ".join(NAMED.get(what, NAMES.get(what, what)) for what in things), because)
        for because, things in by_reason(pairs).items()
    ]


def _machine(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield what the training ran on, as far as it is known."""
    machine, known = facts.run.machine, facts.run.machine.facts
    first: ProcessSummary | None = facts.run.trainers[0] if facts.run.trainers else None
    if first is not None:
        yield "host", first.host
    system = " ".join(str(known[key]) for key in ("system", "kernel") if known.get(key))
    if system:
        yield "system", system
    if known.get("cpu_model"):
        yield "processor", str(known["cpu_model"])
    if machine.cores_allowed is not None:
        visible = "" if machine.cores_visible is None else f" of {machine.cores_visible}"
        yield "cores allowed", f"{machine.cores_allowed:.3g}{visible}"
    if machine.cpu_share is not None:
        others = machine.others_cpu_share
        theirs = f", {share(others)} by other programs" if others and others >= SMALL else ""
        yield "cores busy", f"{share(machine.cpu_share)}{theirs}"
    if known.get("memory_usable_bytes"):
        yield "memory", size(known["memory_usable_bytes"])
    gpus = [str(gpu.get("name")) for gpu in known.get("gpus") or () if gpu.get("name")]
    yield "GPU", ", ".join(gpus) or str(known.get("gpus_absent") or UNKNOWN)
    if first is not None:
        yield "device of the model", first.device or UNKNOWN
        yield "torch", first.torch or UNKNOWN
        if first.world_size and first.world_size > 1:
            yield "training processes", str(first.world_size)
