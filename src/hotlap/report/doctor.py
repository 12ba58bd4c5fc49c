"""Show what ``hotlap doctor`` found: as lines for a terminal, as an object for JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from rich.console import Console
from rich.text import Text

FORMAT: Final = 1

_WIDEST: Final = 120
"""Longer lines are hard to read."""

_STYLES: Final = {"good": "green", "limited": "yellow", "absent": "cyan", "unknown": "magenta"}
"""States, in the order of the last line, and their colours."""


class Check(Protocol):
    """One thing that the machine offers or lacks; the words stand at ``machine.checks.check``."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def seen(self) -> str: ...
    @property
    def consequence(self) -> str: ...
    @property
    def fix(self) -> str | None: ...


def document(
    checks: Sequence[Check], machine: Mapping[str, Any], hotlap_version: str
) -> dict[str, Any]:
    """Return the JSON form, format 1: ``format``, ``hotlap_version``, ``checks``, ``machine``.

    machine: as ``machine.facts.machine_facts`` gives it.
    """
    return {
        "format": FORMAT,
        "hotlap_version": hotlap_version,
        "checks": [
            {
                "name": check.name,
                "state": check.state,
                "seen": check.seen,
                "consequence": check.consequence,
                "fix": check.fix,
            }
            for check in checks
        ],
        "machine": dict(machine),
    }


def lines(checks: Sequence[Check], width: int) -> list[Text]:
    """Return the checks as lines of at most ``width`` columns: state, name, what was seen and what
    follows from it; at the end the number of each state, and which can be mended."""
    margin = max(map(len, _STYLES)) + 2
    inset = margin + max((len(check.name) for check in checks), default=0) + 2
    shown: list[Text] = []
    for check in checks:
        head = Text(check.state.ljust(margin), style=_STYLES.get(check.state, ""))
        head.append(check.name.ljust(inset - margin), style="default")
        said = [(check.seen, "default"), (check.consequence, "dim")]
        if check.fix is not None:
            said.append((f"fix: {check.fix}", "bold default"))
        for words, style in said:
            for line in textwrap.wrap(words, max(20, width - inset), break_on_hyphens=False):
                shown.append(head.append(line, style=style))
                head = Text(" " * inset)
    counts = Counter(check.state for check in checks)
    total = ", ".join(f"{counts[state]} {state}" for state in _STYLES if counts[state])
    mendable = ", ".join(check.name for check in checks if check.fix is not None)
    last = [f"{len(checks)} checks: {total}"]
    if mendable:
        last += textwrap.wrap(f"with a fix above: {mendable}", width, break_on_hyphens=False)
    return [*shown, Text(), *map(Text, last)]


def show(checks: Sequence[Check], console: Console) -> None:
    """Print the checks to a terminal, or to a pipe at 80 columns."""
    width = min(console.width, _WIDEST)
    for line in lines(checks, width):
        console.print(line, overflow="ignore", crop=False, highlight=False)
