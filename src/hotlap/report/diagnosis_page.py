"""The page of a diagnosis for a terminal: the verdict first, then what it rests on."""

from __future__ import annotations

from typing import Final, NamedTuple

from hotlap.report.epoch_end import epoch_end_words
from hotlap.report.finding_lines import finding_lines
from hotlap.report.limits import Limit, knee, limits, storage_rates
from hotlap.report.page import Page, Row
from hotlap.report.sections import SMALL, head, outcome, phase_lines, sentence
from hotlap.report.units import UNKNOWN, digits, duration, many, share
from hotlap.report.unmeasured import NAMED, by_reason, not_measured
from hotlap.report.wording import BOUNDS_SAID, busy, gain, noise
from hotlap.values.facts import Facts
from hotlap.values.finding import Diagnosis
from hotlap.values.phase import STEP_PHASES
from hotlap.values.shares import training_rate

MOST_LINES: Final = 60
MOST_POINTS: Final = 8
MOST_CLOSED: Final = 5
"""Blank lines that are given up before anything is left out."""
SCALE: Final = 5
"""Bars of ceilings end at so many times the present rate."""


class Detail(NamedTuple):
    """How much is shown.

    small: share below which a phase gets no bar. full: findings told in full, the others in two
    lines each. reasons: reasons why something was not measured. seen: lines of evidence.
    """

    small: float
    full: int
    reasons: int
    seen: int


LESS_AND_LESS: Final = (
    Detail(SMALL, 4, 4, 3),
    Detail(0.03, 4, 3, 2),
    Detail(0.05, 4, 2, 1),
    Detail(0.05, 3, 1, 1),
    Detail(0.05, 2, 1, 1),
    Detail(0.10, 1, 1, 1),
)
"""The first detail that fits into the lines is taken; the last one whether it fits or not."""


def diagnosis_page(
    facts: Facts,
    diagnosis: Diagnosis,
    width: int = 90,
    colour: bool = False,
    unicode: bool = True,
    name: str | None = None,
) -> str:
    """Return a diagnosis as text that ends with a newline.

    Args:
        facts: what the experiments found out.
        diagnosis: what was concluded from just these facts.
        width: columns of the terminal; the text is at least 60 and at most 100 wide.
        colour: with the escape sequences that terminals understand.
        unicode: with block characters; otherwise in ASCII.
        name: what the run is called on the command line; None takes its id.
    """
    for detail in LESS_AND_LESS:
        page = _page(facts, diagnosis, width, name or facts.run.id, detail)
        if len(page.lines) <= MOST_LINES + MOST_CLOSED:
            break
    page.close_up(MOST_LINES)
    return page.render(colour, unicode)


def _page(facts: Facts, diagnosis: Diagnosis, width: int, name: str, detail: Detail) -> Page:
    page = Page(width)
    head(page, facts.run)
    page.blank()
    _verdict(page, facts, diagnosis)
    page.blank()
    _step(page, facts, detail.small)
    _run(page, facts, detail.small)
    page.blank()
    _ceilings(page, facts)
    _storage(page, facts)
    _workers(page, facts)
    page.blank()
    finding_lines(page, facts, diagnosis, detail.full, detail.seen)
    page.blank()
    _doubts(page, facts, diagnosis, detail.reasons)
    page.blank()
    _next(page, diagnosis, name)
    return page


def _verdict(page: Page, facts: Facts, diagnosis: Diagnosis) -> None:
    page.words("Verdict", sentence(diagnosis.headline), "bold", most=3)
    said = f"bound by {BOUNDS_SAID.get(diagnosis.bound, diagnosis.bound)}"
    if diagnosis.bound == "unknown":
        said = "what binds it could not be told"
    if len(diagnosis.findings) > 1 and diagnosis.together.high is not None:
        said += f"; with all findings mended {gain(diagnosis.together)}"
    if diagnosis.next_ceiling:
        said += f"; the next ceiling: {diagnosis.next_ceiling}"
    page.words("", sentence(said), most=3)
    if facts.run.absence is not None:
        page.words("Nothing", f"No step was measured: {sentence(facts.run.absence)}")


def _step(page: Page, facts: Facts, small: float) -> None:
    if not facts.run.trainers or facts.run.absence is not None:
        return
    step = facts.run.trainers[0].step
    if step.median_ns is None:
        page.words("Step", f"{UNKNOWN}: {many(step.steps, 'step')} seen, none of them steady")
        return
    rate = "" if step.samples_per_s is None else f", {digits(step.samples_per_s)} samples/s"
    spread = f"8 of 10 from {duration(step.p10_ns)} to {duration(step.p90_ns)}"
    page.words("Step", f"{duration(step.median_ns)} median, {spread}{rate}")
    phases = {name: step.phases[name] for name in STEP_PHASES if name in step.phases}
    phase_lines(page, phases, small, (), falling=True)


def _run(page: Page, facts: Facts, small: float) -> None:
    run = facts.run
    steps = sum(one.step.steps for one in run.trainers[:1])
    said = [] if run.wall_ns is None else [duration(run.wall_ns)]
    said.append(many(steps, "step"))
    if facts.whole_run or run.exit_code != 0:
        said.append(outcome(run))
    if not facts.whole_run:
        said.append("watched up to here and not to the run's own end")
    page.words("Run", ", ".join(said))
    phase_lines(page, run.phases, small, (), falling=True)
    end = epoch_end_words(facts)
    if end is not None:
        page.words("Epoch", f"its end, {end}")


def _ceilings(page: Page, facts: Facts) -> None:
    """Write the rates that the parts would reach alone, beside the present one."""
    known = [limit for limit in limits(facts) if limit.rate is not None]
    now = training_rate(facts)
    if known:
        rates = [limit.rate for limit in known if limit.rate is not None]
        most = max([*rates, now or 0.0]) or 1.0
        ends = ""
        if now and most > SCALE * now:
            # A part that is a thousand times as fast would leave nothing to see of the others.
            most = SCALE * now
            ends = f" (bars end at {SCALE} times the present rate)"
        page.words("Ceilings", f"what each part would reach alone, in samples/s{ends}:", "dim")
        rows = [] if now is None else [Row("now", now / most, "", digits(now), "bright_black")]
        rows += [_ceiling(limit, most) for limit in known]
        page.bars("", rows)
    absent = [(limit.name, limit.because or "") for limit in limits(facts) if limit.rate is None]
    for because, names in by_reason(absent).items():
        label = "" if known else "Ceilings"
        page.words(label, f"{', '.join(names)} {UNKNOWN}: {because}", "dim", most=2)
        known = known or limits(facts)


def _ceiling(limit: Limit, most: float) -> Row:
    rate = limit.rate or 0.0
    return Row(limit.name, min(1.0, rate / most), "", digits(rate), "cyan")


def _storage(page: Page, facts: Facts) -> None:
    """Write what one reader reaches from storage and from memory, where that was compared."""
    rates = storage_rates(facts)
    if rates is None:
        return
    page.words(
        "Storage",
        f"one reader, {many(rates.files, 'file')}: {digits(rates.cold)} samples/s from storage "
        f"(waiting {share(rates.cold_blocked)} of that time), {digits(rates.warm)} from memory "
        f"({share(rates.warm_blocked)})",
    )


def _workers(page: Page, facts: Facts) -> None:
    """Write the loader's rate over its workers, and where more of them stop helping."""
    curve = sorted(facts.curve, key=lambda point: point.workers)[:MOST_POINTS]
    if not curve:
        return
    turn = knee(facts.curve)
    if turn is None:
        said = "no other number was tried"
    elif turn == max(point.workers for point in facts.curve):
        said = f"{turn}, the most that were tried, are the fastest"
    else:
        said = f"more than {turn} do not help"
    most = max(point.per_s for point in curve) or 1.0
    rows = [
        Row(
            f"{point.workers}{' ▸' if point.workers == turn else ''}",
            point.per_s / most,
            digits(point.per_s),
            f"({digits(point.low)} to {digits(point.high)})",
            "bold yellow" if point.workers == turn else "yellow",
        )
        for point in curve
    ]
    page.words("Workers", f"samples/s of the loader alone; {said}:", "dim")
    page.bars("", rows)


def _doubts(page: Page, facts: Facts, diagnosis: Diagnosis, most: int) -> None:
    """Write the noise floor, and what was not measured, each reason once."""
    pairs = not_measured(facts, diagnosis)
    words = " ".join(filter(None, (noise(diagnosis.noise_floor), busy(facts.run.machine))))
    if words:
        page.words("Noise", words)
    # The ceilings have said their own reasons above.
    rest = [(what, because) for what, because in pairs if not what.startswith("ceilings.")]
    grouped = by_reason(rest)
    for at, (because, things) in enumerate(list(grouped.items())[:most]):
        named = ", ".join(NAMED.get(what, what) for what in things)
        page.words("" if at else "Missing", f"{named}: {because}", "dim", "- ", most=2)
    if len(grouped) > most:
        more = many(len(grouped) - most, "more reason")
        page.words("", f"and {more}, all of them in --json", "dim")


def _next(page: Page, diagnosis: Diagnosis, name: str) -> None:
    """Write what to type next."""
    lines = []
    if diagnosis.findings:
        code = diagnosis.findings[0].code
        lines.append((f"hotlap explain {code}", "what it is and what to do"))
    lines.append((f"hotlap report {name} --html report.html", "to pass on"))
    for at, (command, says) in enumerate(lines):
        page.words("" if at else "Next", f"{command}    {says}")
