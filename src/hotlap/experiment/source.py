"""What the user's source says where the profile points: lines, expressions, settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from hotlap.experiment.settings import settings_in
from hotlap.experiment.source_files import SourceFiles
from hotlap.values.facts import Facts, Measured, Setting, SourceLine
from hotlap.values.record import Place, Process
from hotlap.values.trial import OperatorEntry, ProfileEntry

MOST_FILES: Final = 200
MOST_SETTINGS: Final = 400


@dataclass(frozen=True)
class Source:
    """The user's source, as far as it bears on a profile.

    profile: the entries that were given, with their expressions. lines: by ``"file:line"``, for
    every place that an entry names. settings: in the order of the files and their lines, the
    entry script first.
    """

    profile: tuple[ProfileEntry, ...] = ()
    lines: Mapping[str, SourceLine] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()


def read_source(
    start: Path,
    profile: Sequence[ProfileEntry],
    files: Iterable[str] = (),
    operators: Sequence[OperatorEntry] = (),
) -> Source:
    """Read the user's source files. Nothing is imported; what cannot be read is left out.

    start: the start directory, which the names of files are relative to.
    profile, operators: what names the places. files: other files of the user's, the entry script
    first: see ``user_files``.
    """
    sources = SourceFiles(start)
    places = _places(profile, operators)
    lines: dict[str, SourceLine] = {}
    for place in places:
        key = f"{place.file}:{place.line}"
        found = None if key in lines else sources.line(place)
        if found is not None:
            lines[key] = found
    wanted = list(dict.fromkeys([*files, *(place.file for place in places)]))[:MOST_FILES]
    settings = [one for file in wanted for one in settings_in(sources, file)]
    return Source(
        profile=tuple(_with_expression(sources, one) for one in profile),
        lines=lines,
        settings=tuple(settings[:MOST_SETTINGS]),
    )


def with_source(facts: Facts, start: Path, process: Process | None) -> Facts:
    """Return facts with the lines, expressions and settings of the source that they point to.

    process: the one that was profiled; its list of files is read too.
    """
    measured = facts.profile if isinstance(facts.profile, Measured) else None
    operators = facts.operators.value if isinstance(facts.operators, Measured) else ()
    files = user_files(process) if process is not None else ()
    found = read_source(start, measured.value if measured else (), files, operators)
    return replace(
        facts,
        profile=replace(measured, value=found.profile) if measured else facts.profile,
        source={**facts.source, **found.lines},
        settings=found.settings or facts.settings,
    )


def user_files(process: Process) -> tuple[str, ...]:
    """Return the user's source files that a process had loaded, its entry script first."""
    return tuple(process.profile_facts.get("files", ()))


def _places(profile: Sequence[ProfileEntry], operators: Sequence[OperatorEntry]) -> list[Place]:
    """Return every place that is named, each once, those of the dearest entries first."""
    dearest = sorted(profile, key=lambda one: -one.ns)
    named = [place for one in dearest for place in (one.place, *one.callers)]
    named += [one.place for one in operators]
    return list(dict.fromkeys(place for place in named if place is not None))


def _with_expression(sources: SourceFiles, one: ProfileEntry) -> ProfileEntry:
    if one.place is None or one.span is None:
        return one
    return replace(one, expression=sources.expression(one.place, one.span))
