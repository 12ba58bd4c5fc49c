"""The report at the beginning of a training, once its steps are steady: at most 25 lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hotlap.report.chosen import shown_loaders
from hotlap.report.finding_lines import beside, suspected_lines
from hotlap.report.page import Page
from hotlap.report.plan_lines import plan_lines
from hotlap.report.sections import (
    SMALL,
    head,
    loader_lines,
    look_lines,
    machine_lines,
    step_lines,
)
from hotlap.report.units import duration
from hotlap.values.finding import Finding
from hotlap.values.summary import RunSummary

MOST_LINES: Final = 25


class Detail(NamedTuple):
    """How much is shown.

    small: share below which a phase gets no bar. gpus: how many. sentences: what stands out.
    suspected: causes.
    """

    small: float
    gpus: int
    sentences: int
    suspected: int = 2


LESS_AND_LESS: Final = (
    Detail(SMALL, 2, 2),
    Detail(0.05, 1, 2),
    Detail(0.05, 1, 1),
    Detail(0.10, 0, 1),
    Detail(0.10, 0, 0),
    Detail(0.10, 0, 0, 1),
)
"""The first detail that fits into the lines is taken."""


def startup(
    summary: RunSummary,
    width: int = 90,
    colour: bool = False,
    unicode: bool = True,
    name: str | None = None,
    suspected: Sequence[Finding] = (),
) -> str:
    """Return the start-up report as text that ends with a newline.

    Args:
        summary: the run so far.
        width: columns of the terminal; the text is at least 60 and at most 100 wide.
        colour: with the escape sequences that terminals understand.
        unicode: with block characters; otherwise in ASCII.
        name: what the run is called on the command line; None takes its id.
        suspected: causes that this one run suggests, ranked; at most two are shown.
    """
    for detail in LESS_AND_LESS:
        page = _page(summary, width, name or summary.id, detail, suspected)
        page.close_up(MOST_LINES)
        if len(page.lines) <= MOST_LINES:
            break
    del page.lines[MOST_LINES:]
    return page.render(colour, unicode)


def _page(
    summary: RunSummary, width: int, name: str, detail: Detail, suspected: Sequence[Finding]
) -> Page:
    page = Page(width)
    head(page, summary)
    page.blank()
    if not summary.trainers or summary.absence is not None:
        page.words("Step", summary.absence or "no step was seen so far")
        return page
    first = summary.trainers[0]
    start_up = first.phases.get("start_up")
    if start_up is not None and start_up.ns is not None:
        page.words("Start", f"{duration(start_up.ns)} to the first step")
    step_lines(page, first, len(summary.trainers) == 1, detail.small)
    page.blank()
    for loader, count in shown_loaders(first)[:1]:
        loader_lines(page, loader, count)
    machine_lines(page, summary.machine, detail.gpus)
    page.blank()
    plan_lines(page, summary)
    look_lines(page, beside(summary.standing_out, suspected)[: detail.sentences])
    suspected_lines(page, suspected, detail.suspected, summary.command)
    page.blank()
    page.words("Next", "the whole run is reported at its end; to see it so far, or again:")
    page.words("", f"hotlap report {name}", "bold")
    return page
