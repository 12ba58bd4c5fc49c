"""Making a finding: one way to turn a region and its remedy into the value that reports show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotlap.diagnose import predict
from hotlap.diagnose.costs import Cost
from hotlap.diagnose.regions import Region
from hotlap.diagnose.say import location
from hotlap.diagnose.shares import floor_of, run_share
from hotlap.values.facts import Facts, Measured
from hotlap.values.finding import Bounds, Evidence, Finding, Location, Remedy
from hotlap.values.phase import STEP_PHASES
from hotlap.values.record import Place

LEAST_SHARE = 0.05
"""Below this share of the run nothing is a cause worth a finding, however quiet the machine."""
_NOISIEST = 0.12
"""Above this share a cause is named, however noisy the machine: what is noisy are the times of
steps, while shares of one and the same run hold."""


@dataclass(frozen=True)
class Rule:
    """Who says it: the constants at the top of a rule's file."""

    code: str
    name: str
    scope: str = "step"


@dataclass(frozen=True)
class Claim:
    """What a rule says about a region.

    share: bounds of the recoverable share. first: the place to name first, if it is not the
    region's hot line. specific, reason: as in ``Finding``. interrupted: part (0-1) of the steps in
    which it happens; None: all, where the phase is one of a step and no experiment has shown it.
    """

    phase: str
    share: Bounds
    remedy: Remedy
    say: str
    first: Place | None = None
    evidence: tuple[Evidence, ...] = ()
    status: str = "suspected"
    specific: bool = True
    reason: bool = False
    interrupted: float | None = None


def worth(facts: Facts, share: float | None) -> bool:
    """Tell whether a share of the run stands above what is noise or not worth a change."""
    return share is not None and share >= least_share(facts)


def least_share(facts: Facts) -> float:
    """Return the share of the run that a cause must have to be named here and now."""
    return max(LEAST_SHARE, min(_NOISIEST, 1.5 * floor_of(facts)))


def finding(facts: Facts, rule: Rule, region: Region | None, claim: Claim) -> Finding:
    """Return the finding of ``rule`` about ``region``.

    region: None for what has a place but no lines in the profile.
    """
    return Finding(
        code=rule.code,
        name=rule.name,
        phase=claim.phase,
        scope=rule.scope,
        status=claim.status,
        recoverable_share=claim.share,
        predicted_speedup=predict.speedup(facts, claim.share, _rest(facts, claim)),
        locations=_locations(region, claim.first),
        evidence=(*_measured(region), *claim.evidence, *_native(facts, region)),
        remedy=claim.remedy,
        say=claim.say,
        covers=region.keys if region is not None else frozenset(),
        specific=claim.specific,
        reason=claim.reason,
    )


def _rest(facts: Facts, claim: Claim) -> float:
    """Return the share of the run that is steps interrupted by the cause, without the cause.

    None of it where an experiment has shown what the steps are without it.
    """
    within = claim.phase in STEP_PHASES
    interrupted = 1.0 if within and claim.status != "proven" else 0.0
    if claim.interrupted is not None:
        interrupted = claim.interrupted
    own = (claim.share.high or 0.0) if within else 0.0
    return interrupted * max(0.0, (run_share(facts, "steps") or 0.0) - own)


def _locations(region: Region | None, first: Place | None) -> tuple[Location, ...]:
    found: dict[tuple[str, int], Location] = {}

    def add(place: Place, share: float | None) -> None:
        found.setdefault((place.file, place.line), location(place, share))

    if first is not None:
        add(first, None)
    if region is not None:
        add(region.line, region.line_share)
        whole = sum(one.ns for one in region.costs)
        for cost in region.costs[:3]:
            if cost.ns >= 0.1 * whole:
                add(cost.place, cost.ns / whole)
    return tuple(found.values())


def _measured(region: Region | None) -> tuple[Evidence, ...]:
    if region is None:
        return ()
    rows = [Evidence("share of the run", round(region.share, 3), "share")]
    for name in ("working", "blocked", "runqueue"):
        part = region.state_share(name)
        if part is not None:
            rows.append(Evidence(name, round(part, 3), "share of that time"))
    rows.append(Evidence("samples", sum(one.samples for one in region.costs), "stacks"))
    return tuple(rows)


def _native(facts: Facts, region: Region | None) -> tuple[Evidence, ...]:
    """Return what runs below the region's hot line in C or C++, where it was looked at."""
    if region is None or not isinstance(facts.native, Measured):
        return ()
    rows = []
    for one in facts.native.value:
        if (one.place.file, one.place.line) == (region.line.file, region.line.line):
            within = f" of {one.library}" if one.library and one.function else ""
            name = f"in {one.function or one.library}{within}"
            rows.append(Evidence(name, round(one.share, 3), "share of the line"))
    return tuple(rows)


def state_of(region: Region) -> str:
    """Return what the thread mostly did in a region: working, blocked, runqueue or unknown."""
    parts = {name: region.state_share(name) for name in ("working", "blocked", "runqueue")}
    known = {name: share for name, share in parts.items() if share is not None}
    return max(known, key=lambda name: known[name]) if known else "unknown"


def growing(costs: Sequence[Cost], everything: Sequence[Cost] = ()) -> float | None:
    """Return how much more of the time a region takes late than early; None with few samples.

    everything: all costs of the run; what lies before its steps is then left out. Without it, a
    line of the step would seem to grow because nothing stepped during start-up.
    """
    ends = _ends(costs, everything)
    return None if ends is None else ends[1] / max(ends[0], 0.5)


def gained_share(costs: Sequence[Cost], everything: Sequence[Cost]) -> float:
    """Return by how much (0-1) a region's share of the steps is higher late than early.

    A step that gets g times as long by what grows in a region gives it up to 1 - 1/g more.
    """
    steps = [one for one in everything if one.phase in STEP_PHASES and one.role == "trainer"]
    ends, wholes = _ends(costs, everything), _ends(steps, everything)
    if ends is None or wholes is None:
        return 0.0
    early, late = (part / max(whole, 0.5) for part, whole in zip(ends, wholes, strict=True))
    return late - early


def _ends(costs: Sequence[Cost], everything: Sequence[Cost]) -> tuple[float, float] | None:
    """Return samples per stretch of time in the first and the last third of the steps."""
    summed = _over_time(costs)
    steps = _over_time([one for one in everything if one.phase in STEP_PHASES])
    begin = _first_step_bin(steps)
    last = max((i for i, count in enumerate(steps or summed) if count), default=-1)
    if sum(summed) < 40 or last < begin:
        return None
    summed = summed[begin : last + 1]
    third = max(1, len(summed) // 3)
    return sum(summed[:third]) / third, sum(summed[-third:]) / third


def _over_time(costs: Sequence[Cost]) -> list[int]:
    rows = [one.over_time for one in costs if one.over_time]
    length = max((len(row) for row in rows), default=0)
    return [sum(row[i] for row in rows if i < len(row)) for i in range(length)]


def _first_step_bin(steps: Sequence[int]) -> int:
    """Return the first of equal stretches of time that is mostly steps."""
    enough = 0.5 * max(steps, default=0)
    return next((i for i, count in enumerate(steps) if count >= enough), 0)
