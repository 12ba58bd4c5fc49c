"""Two runs side by side: what can be compared, and how much faster the second one is.

Means of steady steps are compared, since a stall at every tenth step is time, too. Steps of one
run are no independent draws, so blocks of them are drawn (``stats.ratio``). What differs from one
run of the same command to the next (memory layout, caches, neighbours) is not in an interval of
two runs: that takes several, in turn.
"""

from __future__ import annotations

from typing import Final

from hotlap.account.cycles import steps_of
from hotlap.account.steady import is_detailed, leading
from hotlap.account.trainers import chain_of, stepped, trainers_of
from hotlap.stats.ratio import Ratio, mean
from hotlap.stats.ratio import ratio as ratio_of
from hotlap.stats.warm_up import steady_start
from hotlap.values.comparison import MINIMUM_EFFECT, Change, Comparison, Interval, word_of
from hotlap.values.phase import STEP_PHASES
from hotlap.values.record import Process, Record
from hotlap.values.summary import ProcessSummary, RunSummary

LEAST_STEPS: Final = 10
"""Steady steps that a run must have to be compared."""

_MACHINE: Final = {
    "cpu_model": "processor",
    "cores_allowed": "cores that it may use",
    "gpus": "GPUs",
}
_SAME_SIZE: Final = 0.02
"""Samples per step that differ by less than this are the same batch, with an uneven last one."""
_BUSY: Final = 0.10
_MARGIN: Final = MINIMUM_EFFECT
"""An interval of one run each must lie so far beside 1: for what is not in it."""
_ONE_EACH: Final = (
    "one run each: what differs between two runs of the very same command is not in the interval; "
    "it takes a few per cent, and more on a busy machine"
)


def compare(records: tuple[Record, Record], summaries: tuple[RunSummary, RunSummary]) -> Comparison:
    """Return how the second run compares with the first; both are given as record and account.

    Where a step holds another number of samples, the time per sample is compared.
    """
    because = tuple(_absences(summaries))
    if because:
        return Comparison("not comparable", None, "step", because)
    firsts = summaries[0].trainers[0], summaries[1].trainers[0]
    sizes = _samples_per_step(firsts[0]), _samples_per_step(firsts[1])
    differs, by = _unlike(records, firsts, sizes)
    series = tuple(_steady(record) for record in records)
    short = [
        f"{one.id} has {len(steps)} steady steps, fewer than {LEAST_STEPS}"
        for one, steps in zip(records, series, strict=True)
        if len(steps) < LEAST_STEPS
    ]
    found = None if short else ratio_of([series[0]], [series[1]], mean)
    if found is None:
        return Comparison("not comparable", None, by, (*differs, *short))
    interval = _per_unit(found, sizes if by == "sample" else (1.0, 1.0))
    changes = tuple(_changes(firsts))
    doubts = (_ONE_EACH, *_doubts(records, summaries))
    word = "not comparable" if differs else word_of(interval, _MARGIN)
    return Comparison(word, interval, by, tuple(differs), doubts, changes)


def _absences(summaries: tuple[RunSummary, RunSummary]) -> list[str]:
    return [
        f"{one.id} has no step: {one.absence or 'nobody trained'}"
        for one in summaries
        if one.absence is not None or not one.trainers
    ]


def _unlike(
    records: tuple[Record, Record],
    firsts: tuple[ProcessSummary, ProcessSummary],
    sizes: tuple[float | None, float | None],
) -> tuple[list[str], str]:
    """Return what makes two runs no measure of each other, and the unit of work."""
    differs = []
    for key, name in _MACHINE.items():
        one, other = (record.facts.get(key) for record in records)
        if one != other:
            differs.append(
                f"they ran on different machines: {name} {_said(one)} and {_said(other)}"
            )
    devices = [(one.device or "").split(":")[0] for one in firsts]
    if devices[0] != devices[1]:
        differs.append(f"the model ran on {devices[0]} and on {devices[1]}")
    worlds = [one.world_size or 1 for one in firsts]
    if worlds[0] != worlds[1]:
        differs.append(f"{worlds[0]} and {worlds[1]} ranks trained")
    rules = [one.step.rule for one in firsts]
    if rules[0] != rules[1]:
        differs.append(f"a step ends by {rules[0]} in one and by {rules[1]} in the other")
    if None in sizes or _alike(sizes):
        return differs, "step"
    return differs, "sample"


def _said(value: object) -> str:
    return "none" if value in (None, []) else str(value)


def _alike(sizes: tuple[float | None, float | None]) -> bool:
    one, other = sizes
    return bool(one and other and abs(one / other - 1.0) <= _SAME_SIZE)


def _samples_per_step(one: ProcessSummary) -> float | None:
    if one.step.samples_per_s is None or not one.step.mean_ns:
        return None
    return one.step.samples_per_s * one.step.mean_ns / 1e9


def _first(record: Record) -> Process:
    trainers = [one for one in trainers_of(record) if stepped(one)]
    return chain_of(trainers)[0]


def _steady(record: Record) -> list[int]:
    """Return the steady steps of the first trainer that were kept in detail, in order."""
    process = _first(record)
    steps = steps_of(process)
    warm_up = steady_start([one.wall_ns for one in leading(process, steps)])
    return [one.wall_ns for one in steps[warm_up:]]


def _per_unit(found: Ratio, sizes: tuple[float | None, float | None]) -> Interval:
    factor = (sizes[1] or 1.0) / (sizes[0] or 1.0)
    return Interval(found.low * factor, found.mid * factor, found.high * factor)


def _changes(firsts: tuple[ProcessSummary, ProcessSummary]) -> list[Change]:
    """Return the phases of a mean steady step, those that changed most first."""
    rows = []
    for name in STEP_PHASES:
        before, after = (one.step.phases[name].ns for one in firsts)
        if before or after:
            rows.append(Change(name, before, after))
    return sorted(rows, key=lambda row: -abs((row.after_ns or 0) - (row.before_ns or 0)))


def _doubts(records: tuple[Record, Record], summaries: tuple[RunSummary, RunSummary]) -> list[str]:
    said = []
    if records[0].command != records[1].command:
        said.append("their commands differ")
    versions = [one.trainers[0].torch for one in summaries]
    if versions[0] != versions[1]:
        said.append(f"torch {versions[0]} and {versions[1]}")
    for record, one in zip(records, summaries, strict=True):
        others = one.machine.others_cpu_share
        if others is not None and others >= _BUSY:
            said.append(f"other programs used {others:.0%} of the cores during {one.id}")
        if not is_detailed(_first(record)):
            said.append(f"{one.id} is long: of its steps those kept one by one were compared")
    return said
