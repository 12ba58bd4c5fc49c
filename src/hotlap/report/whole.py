"""The report at the end of a training: where the wall time of the whole run went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hotlap.report.chosen import shown_loaders
from hotlap.report.finding_lines import beside, suspected_lines
from hotlap.report.page import Page, Row
from hotlap.report.plan_lines import plan_lines
from hotlap.report.sections import (
    NAMES,
    SMALL,
    device_lines,
    head,
    loader_lines,
    look_lines,
    machine_lines,
    outcome,
    phase_lines,
    sentence,
    step_lines,
)
from hotlap.report.units import digits, duration, many, share
from hotlap.report.unmeasured import by_reason
from hotlap.values.finding import Finding
from hotlap.values.summary import ProcessSummary, RunSummary, TouchSummary

MOST_CALLS: Final = 5
MOST_RANKS: Final = 8
MOST_LOADERS: Final = 4
MOST_SUSPECTED: Final = 5
SELDOM: Final = 0.1
"""Calls per step below which a count reads better."""


def whole(
    summary: RunSummary,
    width: int = 90,
    colour: bool = False,
    unicode: bool = True,
    name: str | None = None,
    suspected: Sequence[Finding] = (),
) -> str:
    """Return the report of the whole run as text that ends with a newline.

    Args:
        summary: the run.
        width: columns of the terminal; the text is at least 60 and at most 100 wide.
        colour: with the escape sequences that terminals understand.
        unicode: with block characters; otherwise in ASCII.
        name: what the run is called on the command line; None takes its id.
        suspected: causes that this one run suggests, ranked.
    """
    page = Page(width)
    head(page, summary)
    page.blank()
    _run(page, summary)
    if summary.trainers and summary.absence is None:
        _training(page, summary, summary.trainers[0])
        plan_lines(page, summary)
        look_lines(page, beside(summary.standing_out, suspected))
        page.blank()
        suspected_lines(page, suspected, MOST_SUSPECTED, summary.command)
    if summary.absence is not None:
        page.blank()
        page.words("Nothing", f"No step was measured: {sentence(summary.absence)}")
    _missing(page, summary)
    page.blank()
    page.words("Next", f"hotlap report {name or summary.id} --json -    all of this as JSON")
    page.words("", "hotlap doctor    what this machine offers to a training, and lacks")
    return page.render(colour, unicode)


def _run(page: Page, summary: RunSummary) -> None:
    so_far = "" if summary.finished else " up to its last record"
    steps = sum(one.step.steps for one in summary.trainers[:1])
    said = "" if summary.wall_ns is None else f"{duration(summary.wall_ns)}{so_far}, "
    page.words("Run", f"{said}{many(steps, 'step')}, {outcome(summary)}", "bold")
    rows = []
    known = [part for part in summary.phases.values() if part.ns is not None]
    if summary.wall_ns and known:
        rest = summary.wall_ns - sum(part.ns or 0 for part in known)
        if rest >= SMALL * summary.wall_ns:
            part = rest / summary.wall_ns
            rows.append(Row("no record", part, share(part), duration(rest), "red"))
    phase_lines(page, summary.phases, SMALL, rows)
    page.blank()


def _training(page: Page, summary: RunSummary, first: ProcessSummary) -> None:
    step_lines(page, first, len(summary.trainers) == 1)
    device_lines(page, first.step)
    page.blank()
    loaders = shown_loaders(first)
    for loader, count in loaders[:MOST_LOADERS]:
        loader_lines(page, loader, count)
    if len(loaders) > MOST_LOADERS:
        more = many(len(loaders) - MOST_LOADERS, "more loader")
        page.words("", f"and {more}, shown by --json", "dim")
    machine_lines(page, summary.machine)
    page.blank()
    _calls(page, first.touches)
    _trainers(page, summary.trainers)
    page.blank()


def _calls(page: Page, touches: Sequence[TouchSummary]) -> None:
    """Write the calls that took longest: reads of tensors, prints, saves, copies."""
    shown = [touch for touch in touches if touch.per_step is not None][:MOST_CALLS]
    if not shown:
        return
    rows = [("call", "from", "how often", "each", "of steps")]
    for touch in shown:
        where = "a library" if touch.place is None else f"{touch.place.file}:{touch.place.line}"
        per_call = (touch.ns_per_step or 0.0) / touch.per_step if touch.per_step else None
        of_steps = "outside" if touch.family == "checkpoint" else share(touch.share)
        rows.append((touch.kind, where, _often(touch), duration(per_call), of_steps))
    page.table("Calls", rows, left=2, gives=1)
    page.blank()


def _often(touch: TouchSummary) -> str:
    """Return how often a call happened: per step, or in all when that is the clearer number."""
    if touch.per_step is None or touch.per_step < SELDOM:
        return f"{touch.count:,} in all"
    return f"{digits(touch.per_step)} per step"


def _trainers(page: Page, trainers: Sequence[ProcessSummary]) -> None:
    """Write one line per training process, when there are several."""
    if len(trainers) < 2:
        return
    ranked = any(one.rank is not None for one in trainers)
    rows = [("rank" if ranked else "process", "steps", "step", "data wait", "backward", "host")]
    shown = trainers if len(trainers) <= MOST_RANKS else _ends_of(trainers)
    for one in shown:
        rows.append(
            (
                str(one.rank if ranked else one.pid),
                f"{one.step.steps:,}",
                duration(one.step.median_ns),
                share(one.step.phases["data_wait"].share),
                share(one.step.phases["backward"].share),
                one.host,
            )
        )
    page.table("Ranks" if ranked else "Trainings", rows)
    if len(shown) < len(trainers):
        page.words("", f"{len(trainers)} in all, the fastest and the slowest are shown", "dim")


def _ends_of(trainers: Sequence[ProcessSummary]) -> list[ProcessSummary]:
    """Return the fastest and the slowest halves of what fits, in order of step time."""
    ordered = sorted(trainers, key=lambda one: one.step.median_ns or 0)
    return ordered[: MOST_RANKS // 2] + ordered[-MOST_RANKS // 2 :]


def _missing(page: Page, summary: RunSummary) -> None:
    page.blank()
    if summary.not_measured:
        page.words("Missing", "Not measured, because", "dim")
    for because, things in by_reason(summary.not_measured).items():
        named = ", ".join(NAMES.get(what, what) for what in things)
        page.words("", f"{named}: {because}", "dim", "- ")
    page.blank()
    for at, fault in enumerate(summary.faults):
        page.words("" if at else "Faults", f"hotlap failed here and went on without: {fault}")
