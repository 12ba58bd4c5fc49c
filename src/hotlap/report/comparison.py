"""Two runs side by side: which is faster, and where the difference lies."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from hotlap.report.json_form import FORMAT, to_json
from hotlap.report.page import Page
from hotlap.report.sections import NAMES, outcome, sentence
from hotlap.report.units import UNKNOWN, duration, many, share
from hotlap.values.comparison import MINIMUM_EFFECT, Comparison, Interval
from hotlap.values.summary import RunSummary

_SMALL: Final = 0.01
"""Share of the longer step below which a phase is not listed."""


def comparison_page(
    comparison: Comparison,
    runs: tuple[RunSummary, RunSummary],
    width: int = 90,
    colour: bool = False,
    unicode: bool = True,
) -> str:
    """Return a comparison as text that ends with a newline.

    width: columns of the terminal; the text is at least 60 and at most 100 wide. colour: with
    escape sequences. unicode: with block characters; otherwise in ASCII.
    """
    page = Page(width)
    page.words("Compared", f"{runs[1].id} with {runs[0].id}", "bold")
    page.words("", verdict(comparison), "bold green" if comparison.word == "faster" else "bold")
    page.blank()
    _runs(page, runs)
    page.blank()
    _phases(page, comparison)
    page.blank()
    for at, doubt in enumerate(comparison.doubts):
        page.words("" if at else "Doubts", doubt, "dim", "- ")
    return page.render(colour, unicode)


def verdict(comparison: Comparison) -> str:
    """Return the result in one or two sentences."""
    ratio, by = comparison.ratio, comparison.by
    if comparison.because:
        said = sentence(f"not comparable: {'; '.join(comparison.because)}")
        if ratio is None:
            return said
        return f"{said} For what it is worth: the second is {_ratio(ratio)} times as fast by {by}."
    if ratio is None:
        return "Not comparable."
    if comparison.word == "no difference":
        return (
            f"No difference: the second is {_ratio(ratio)} times as fast. Only what lies "
            f"{share(MINIMUM_EFFECT)} beside 1 with its whole interval is called a difference."
        )
    if comparison.word == "slower":
        turned = Interval(1 / ratio.high, 1 / ratio.mid, 1 / ratio.low)
        return f"Slower: a {by} of the second takes {_ratio(turned)} times as long."
    return f"Faster: the second makes {_ratio(ratio)} times as many {by}s in the same time."


def comparison_json(comparison: Comparison, runs: tuple[RunSummary, RunSummary]) -> dict[str, Any]:
    """Return a comparison as an object that ``json.dumps`` takes."""
    before, after = (to_json(one) for one in runs)
    return {
        "format": FORMAT,
        "report": "comparison",
        "hotlap_version": before["hotlap_version"],
        "comparison": {
            "word": comparison.word,
            "ratio": None if comparison.ratio is None else asdict(comparison.ratio),
            "by": comparison.by,
            "because": list(comparison.because),
            "doubts": list(comparison.doubts),
            "minimum_effect": MINIMUM_EFFECT,
        },
        "before": {key: before[key] for key in ("id", "command", "run", "step", "workers")},
        "after": {key: after[key] for key in ("id", "command", "run", "step", "workers")},
    }


def _ratio(ratio: Interval) -> str:
    return f"{ratio.mid:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _runs(page: Page, runs: tuple[RunSummary, RunSummary]) -> None:
    rows = [("run", "wall time", "steps", "mean step", "median", "ended")]
    for one in runs:
        step = one.trainers[0].step if one.trainers else None
        rows.append(
            (
                one.id,
                duration(one.wall_ns),
                f"{step.steps:,}" if step else "0",
                duration(step.mean_ns) if step else UNKNOWN,
                duration(step.median_ns) if step else UNKNOWN,
                outcome(one),
            )
        )
    page.table("Runs", rows, left=1)


def _phases(page: Page, comparison: Comparison) -> None:
    """Write the phases of a mean steady step before and after, the largest change first."""
    longest = max(
        sum(one.before_ns or 0 for one in comparison.changes),
        sum(one.after_ns or 0 for one in comparison.changes),
    )
    shown = [
        one
        for one in comparison.changes
        if max(one.before_ns or 0, one.after_ns or 0) >= _SMALL * longest
    ]
    if not shown:
        return
    rows = [("phase of a step", "before", "after", "difference")]
    for one in shown:
        known = one.before_ns is not None and one.after_ns is not None
        by = (one.after_ns or 0) - (one.before_ns or 0)
        signed = f"{'+' if by >= 0 else '-'}{duration(abs(by))}" if known else UNKNOWN
        before, after = duration(one.before_ns), duration(one.after_ns)
        rows.append((NAMES.get(one.name, one.name), before, after, signed))
    page.table("Steps", rows, left=1)
    rest = len(comparison.changes) - len(shown)
    if rest:
        page.words("", f"and {many(rest, 'phase')} under {share(_SMALL)} of a step", "dim")
