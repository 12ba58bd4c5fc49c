"""The user's source as far as the facts hold it: nothing is read from disk here."""

from __future__ import annotations

from typing import Final, NamedTuple

from hotlap.values.facts import Facts, SourceLine
from hotlap.values.finding import Location

AROUND: Final = 4
"""Lines before and after a place that an excerpt may hold."""

LONGEST: Final = 300
"""Characters of a line that an excerpt holds."""


class Shown(NamedTuple):
    """One line of an excerpt. named: the finding names it; gap: lines before it are not known."""

    line: int
    text: str
    named: bool
    gap: bool


def text_at(facts: Facts, location: Location) -> str | None:
    """Return the text of the line that a finding names, None where the facts do not hold it."""
    found = _by_place(facts).get((location.file, location.line))
    return None if found is None else found.text


def excerpt(facts: Facts, location: Location) -> list[Shown]:
    """Return the known lines around a place, in order; empty when the place itself is not known.

    Loops around it and the beginning of its function belong to it.

    The facts hold the lines that the profile names, so that most excerpts have gaps.
    """
    lines = _by_place(facts)
    own = lines.get((location.file, location.line))
    if own is None:
        return []
    wanted = set(range(location.line - AROUND, location.line + AROUND + 1))
    # What tells how often the line runs, however far above it stands.
    wanted.update(own.loops)
    if own.function_line is not None:
        wanted.add(own.function_line)
    shown: list[Shown] = []
    for number in sorted(wanted):
        found = lines.get((location.file, number))
        if found is None:
            continue
        gap = bool(shown) and shown[-1].line != number - 1
        shown.append(Shown(number, cut(found.text), number == location.line, gap))
    return shown


def cut(text: str, most: int = LONGEST) -> str:
    """Return a line of source without what lies beyond ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _by_place(facts: Facts) -> dict[tuple[str, int], SourceLine]:
    return {(one.place.file, one.place.line): one for one in facts.source.values()}
