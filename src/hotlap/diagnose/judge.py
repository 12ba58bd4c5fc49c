"""Ask every rule, drop what another says better, rank, and say in one sentence what bounds it."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.diagnose import predict
from hotlap.diagnose.build import least_share
from hotlap.diagnose.catalogue import all_rules
from hotlap.diagnose.costs import base_of, costs_of
from hotlap.diagnose.epochs import with_epoch_ends
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import busy_words, is_cpu, phase_share, trainer_of
from hotlap.values.facts import Facts, Measured
from hotlap.values.finding import Bounds, Diagnosis, Finding, Unknown

_INPUT = ("data_wait", "epoch_edge")
_COMPUTE = ("forward", "backward", "optimizer")
_HOST = ("other", "logging", "checkpoint", "evaluation", "start_up", "shut_down", "compile")
_MOST = 6


def judge(facts: Facts) -> Diagnosis:
    """Return the diagnosis of ``facts``. Pure; a rule that fails is one `unknown`."""
    facts = with_epoch_ends(facts)
    found: list[Finding] = []
    unknown: list[tuple[str, str]] = []
    for rule in all_rules():
        try:
            answer = rule.check(facts)
        except Exception as error:
            answer = Unknown(f"the rule failed: {type(error).__name__}: {error}")
        if isinstance(answer, Finding):
            found.append(answer)
        elif isinstance(answer, Unknown):
            unknown.append((f"{rule.CODE} {rule.NAME}", answer.because))
    busy = busy_words(facts)
    if busy is not None:
        unknown.append(("the shares on a quiet machine", f"{busy}; measure again when it is free"))
    findings = tuple(_said_once(sorted(found, key=_weight, reverse=True)))[:_MOST]
    bound = bound_of(facts)
    return Diagnosis(
        bound=bound,
        headline=_headline(facts, findings, bound),
        findings=findings,
        unknown=tuple(unknown),
        next_ceiling=_next_ceiling(facts, findings),
        together=_together(facts, findings),
        noise_floor=facts.noise.value if isinstance(facts.noise, Measured) else None,
    )


def bound_of(facts: Facts) -> str:
    """Return what the run is bound by: the largest part of its time, one of ``BOUNDS``."""
    trainer = trainer_of(facts)
    if trainer is None or not trainer.step.steps:
        return "unknown"
    parts = {
        "input": _sum(facts, _INPUT),
        "compute": _sum(facts, _COMPUTE),
        "host": _sum(facts, _HOST),
        "communication": _sum(facts, ("communication", "transfer")),
    }
    known = {name: share for name, share in parts.items() if share is not None}
    if not known:
        return "unknown"
    ranked = sorted(known.items(), key=lambda pair: -pair[1])
    if len(ranked) > 1 and ranked[0][1] - ranked[1][1] < 0.05:
        return "balanced"
    return ranked[0][0]


def _sum(facts: Facts, phases: Sequence[str]) -> float | None:
    shares = [phase_share(facts, name) for name in phases]
    known = [one for one in shares if one is not None]
    return sum(known) if known else None


def _weight(finding: Finding) -> tuple[float, float]:
    """Rank by what is surely gained rather than by what may be: the upper bound is the softer."""
    share = finding.recoverable_share
    expected = (2 * (share.low or 0.0) + (share.high or 0.0)) / 3
    proven = 1.15 if finding.status == "proven" else 1.0
    return expected * proven, share.high or 0.0


def _said_once(ranked: Sequence[Finding]) -> list[Finding]:
    """Drop findings about lines that another one, of its own evidence, explains already.

    One that knows the reason outranks one that knows the work, and a specific one the general; of
    two alike the heavier stays.
    """
    kept: list[Finding] = []
    for one in sorted(ranked, key=lambda one: (not one.reason, not one.specific)):
        if not any(_same(one, other) for other in kept):
            kept.append(one)
    return sorted(kept, key=_weight, reverse=True)


def _same(one: Finding, other: Finding) -> bool:
    if not one.covers or not other.covers:
        return False
    shared = len(one.covers & other.covers)
    return shared >= 0.5 * min(len(one.covers), len(other.covers))


def _headline(facts: Facts, findings: Sequence[Finding], bound: str) -> str:
    if not facts.run.trainers:
        return "Nothing was measured: " + (facts.run.absence or "no training step was seen")
    if findings:
        first = findings[0]
        gain = first.predicted_speedup
        by = f", {gain.low:.2f} to {gain.high:.2f} times faster without it" if gain.high else ""
        place = first.locations[0] if first.locations else None
        where = f" ({place.file}:{place.line})" if place else ""
        return f"The largest cost is {first.name.replace('-', ' ')}{where}{by}."
    base = base_of(facts)
    least = least_share(facts)
    if base is None:
        return "Unknown: the run's phases were not measured."
    return (
        f"Nothing worth fixing: no cause above {percent(least)} of {base.words} was found; "
        f"you are bound by {_bound_words(facts, bound)}."
    )


def _bound_words(facts: Facts, bound: str) -> str:
    share = _sum(facts, _COMPUTE)
    if bound == "compute" and share is not None:
        where = "this processor" if is_cpu(facts) else "the device"
        return f"the model's own arithmetic on {where} ({percent(share)} of the time)"
    return {"input": "the input", "host": "the host's code", "balanced": "several parts"}.get(
        bound, bound
    )


def _next_ceiling(facts: Facts, findings: Sequence[Finding]) -> str | None:
    rates = {
        "the model alone": facts.compute_per_s,
        "the loader at its present settings": facts.loader_per_s,
        "preparing samples with nothing blocked": facts.prep_per_s,
        "fetching from storage": facts.fetch_per_s,
    }
    known = {name: one.value for name, one in rates.items() if isinstance(one, Measured)}
    if not known:
        return None
    mended = {one.phase for one in findings}
    if "data_wait" in mended and "the model alone" in known:
        name = "the model alone"
    else:
        name = min(known, key=lambda one: known[one])
    return f"{name}, {known[name]:,.0f} samples/s"


def _together(facts: Facts, findings: Sequence[Finding]) -> Bounds:
    """Return what all findings would gain: no more than the lines that they are about take.

    The upper bounds of several are not reached at once: each may hold what goes with its lines.
    But all together gain what one of them gains alone.
    """
    covered = frozenset().union(*(one.covers for one in findings))
    lines = sum(one.share for one in costs_of(facts) if one.key in covered)
    apart = sum(one.recoverable_share.high or 0.0 for one in findings if not one.covers)
    single = max((one.recoverable_share.high or 0.0 for one in findings), default=0.0)
    shares = [one.recoverable_share for one in findings]
    sums = predict.together(facts, shares, max(lines + apart, single))
    alone = [one.predicted_speedup for one in findings]
    return Bounds(
        max((one.low for one in (sums, *alone) if one.low is not None), default=None),
        max((one.high for one in (sums, *alone) if one.high is not None), default=None),
    )
