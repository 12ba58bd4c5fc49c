"""The page of a tuning for a terminal: what it brings, what was kept, what was not, what next."""

from __future__ import annotations

from typing import Final

from hotlap.report.page import Page, Row
from hotlap.report.sections import NAMES, head, sentence
from hotlap.report.units import UNKNOWN, duration, many, share
from hotlap.values.arm import ArmRun
from hotlap.values.comparison import Interval
from hotlap.values.finding import Bounds, Finding
from hotlap.values.tuning import Tried, Tuning

_MOST_REJECTED: Final = 8
_SMALL: Final = 0.01
_STYLES: Final = {"as it stands": "yellow", "under the plan": "green"}


def tuning_page(
    tuning: Tuning,
    width: int = 90,
    colour: bool = False,
    unicode: bool = True,
    file: str | None = None,
    command: str | None = None,
) -> str:
    """Return a tuning as text that ends with a newline.

    width, colour, unicode: as for ``diagnosis_page``. file: where the plan was written, None where
    it was not. command: the user's, as one line for a shell.
    """
    page = Page(width)
    head(page, tuning.baseline[0].run)
    page.blank()
    _verdict(page, tuning)
    page.blank()
    _before_and_after(page, tuning)
    page.blank()
    _kept(page, tuning)
    page.blank()
    _others(page, tuning)
    page.blank()
    _sameness(page, tuning)
    page.blank()
    _next(page, tuning, file, command)
    return page.render(colour, unicode)


def _verdict(page: Page, tuning: Tuning) -> None:
    if tuning.plan is None:
        said = "nothing worth changing was found"
        if tuning.gain is not None:
            said += f": all that helped, together, is {ratio(tuning.gain)} times as fast"
        page.words("Result", sentence(said), "bold")
        page.words("", sentence(tuning.baseline[1].headline))
    else:
        steps = many(int(tuning.span.get("steps", 0)), "step")
        gain = tuning.plan.gain
        figure = ratio(gain) if gain is not None else UNKNOWN
        page.words("Result", f"{figure} times as fast, the same {steps} in turn.", "bold green")
        if tuning.run_gain is not None:
            said = f"With its start and its end, the whole run: {ratio(tuning.run_gain)} times."
            page.words("", said)
    counted = sum(1 for one in tuning.runs if one.failed is None)
    noise = (
        "" if tuning.noise is None else f"; two runs of one kind differ by {share(tuning.noise)}"
    )
    page.words(
        "",
        f"{many(counted, 'run')} compared{noise}; a gain under {share(tuning.minimum_effect)} does "
        "not count.",
        "dim",
    )
    for note in tuning.notes:
        page.words("", sentence(note), "dim")


def _before_and_after(page: Page, tuning: Tuning) -> None:
    """Draw what the measured steps took before and after, and where."""
    before = typical(tuning, bare=True)
    after = typical(tuning, bare=False) if tuning.plan is not None else None
    if before is None or not before.accounts:
        return
    most = max(one.total_ns for one in (before, after) if one is not None) or 1
    rows = []
    for one, name in ((before, "as it stands"), (after, "under the plan")):
        if one is not None:
            value = f"{duration(one.step_ns)} a step"
            rows.append(Row(name, one.total_ns / most, "", value, _STYLES[name]))
    page.bars("Steps", rows)
    if after is None:
        return
    table = [("where", "before", "after")]
    for name in before.accounts:
        first, second = (one.accounts.get(name, 0) / max(1, one.steps) for one in (before, after))
        if max(first, second) >= _SMALL * (before.step_ns or 1):
            table.append((NAMES.get(name, name), duration(first), duration(second)))
    page.table("", table, left=1)


def typical(tuning: Tuning, bare: bool) -> ArmRun | None:
    """Return the run of the middle among those as it stands, or under the whole plan."""
    plan = tuning.plan.settings if tuning.plan is not None else {}
    sound = [
        one
        for one in tuning.runs
        if one.failed is None and dict(one.arm.settings) == ({} if bare else plan)
    ]
    ordered = sorted(sound, key=lambda one: one.total_ns)
    return ordered[len(ordered) // 2] if ordered else None


def _kept(page: Page, tuning: Tuning) -> None:
    kept = [one for one in tuning.tried if one.word == "kept"]
    for at, one in enumerate(kept):
        figures = f"{measured_words(one.measured)}{predicted_words(one.predicted)}"
        said = f"{one.knob} = {one.value}: {figures}"
        page.words("" if at else "Plan", said, "bold", "▸ ")
        page.words("", f"{one.numerics}; {one.proof}", "", "  ")
    offered = [one for one in tuning.tried if one.word == "offered"]
    for at, one in enumerate(offered):
        said = f"{one.knob} = {one.value}: {one.because} (--numerics {one.numerics})"
        page.words("" if at else "Offered", said, "", "▸ ")


def _others(page: Page, tuning: Tuning) -> None:
    """Write what was rejected: what was run first, then what does not apply, by its reasons."""
    rejected = [one for one in tuning.tried if one.word == "rejected"]
    run = [one for one in rejected if one.measured is not None or not _applies_not(one)]
    for at, one in enumerate(run[:_MOST_REJECTED]):
        page.words("" if at else "Rejected", _said(one), "", "- ", 3)
    told = {one.knob for one in tuning.tried if one not in rejected or one in run[:_MOST_REJECTED]}
    rest = [one.knob for one in rejected if one.knob not in told]
    if rest:
        names = ", ".join(dict.fromkeys(rest))
        label = "Rejected" if not run else ""
        page.words(label, f"not for this training: {names} (why: --json)", "dim", "- ", 3)
    if tuning.not_tried:
        page.words(
            "Left",
            f"not tried, since the budget is spent: {', '.join(tuning.not_tried)}; "
            "--budget SECONDS gives more, --resume goes on",
        )


def _applies_not(one: Tried) -> bool:
    return one.measured is None and not one.snippet


def _said(one: Tried) -> str:
    value = "" if one.value is None else f" = {one.value}"
    beside = "".join(f" with {knob} = {value}" for knob, value in one.beside.items())
    return f"{one.knob}{value}{beside}: {one.because}"


def _sameness(page: Page, tuning: Tuning) -> None:
    if tuning.plan is None:
        return
    page.words("Same?", f"The training under the plan is {tuning.sameness.word}.")
    unsure = tuning.sameness.word.startswith("unknown")
    for check in tuning.sameness.checks:
        if check.passed is False or (unsure and check.passed is None):
            page.words("", f"{check.name}: {check.says}", "dim", "- ")


def _next(page: Page, tuning: Tuning, file: str | None, command: str | None) -> None:
    ceiling = (tuning.tuned or tuning.baseline)[1].next_ceiling
    if ceiling:
        page.words("Next", sentence(f"the next ceiling: {ceiling}"))
    if tuning.pays_back_steps:
        page.words("", f"The longer start is earned after {tuning.pays_back_steps:,} steps.")
    left = left_to_mend(tuning)
    if left:
        whose = "What remains" if left[0].remedy.kind == "knob" else "Only you can mend"
        page.words("" if ceiling else "Next", f"{whose}: {left[0].say}", most=4)
    if tuning.plan is not None and file is not None and command is not None:
        page.words("Use it", f"hotlap run --plan {file} {command}")


def left_to_mend(tuning: Tuning) -> list[Finding]:
    """Return findings that are worth a change of the code; not those whose knobs were in vain."""
    tried = {one.knob for one in tuning.tried if one.measured is not None or one.word == "kept"}
    return [
        one
        for one in (tuning.tuned or tuning.baseline)[1].findings
        if one.severity != "low" and not (one.remedy.knobs and tried.issuperset(one.remedy.knobs))
    ]


def ratio(one: Interval) -> str:
    """Return a ratio with its interval: ``1.52 (1.48 to 1.57)``."""
    return f"{one.mid:.2f} ({one.low:.2f} to {one.high:.2f})"


def measured_words(one: Interval | None) -> str:
    """Return what a knob brought, in words."""
    return "not measured alone" if one is None else f"{ratio(one)} times as fast"


def predicted_words(one: Bounds) -> str:
    """Return what was predicted, to follow what was measured; empty where nothing was."""
    if one.low is None or one.high is None:
        return ""
    return f", predicted {one.low:.2f} to {one.high:.2f}"
