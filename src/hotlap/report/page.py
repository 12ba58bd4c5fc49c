"""A page of text with a column of labels at its left, and bars drawn with blocks."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from hotlap.report.readable import readable

GUTTER: Final = 10
"""Columns of the labels."""

WIDEST: Final = 100
"""A page is no wider than this, however wide the terminal is."""

_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_ASCII: Final = str.maketrans(
    {"█": "#", "▉": "#", "▊": "#", "▋": "#", "▌": "#", "▍": " ", "▎": " ", "▏": " "}
    | {"µ": "u", "▸": ">", "…": "~", "\N{REPLACEMENT CHARACTER}": "?"}
)


_HELD: Final = "\N{NO-BREAK SPACE}"


class Row(NamedTuple):
    """One bar: its name, its share of the whole (0-1, None draws nothing), a value in words."""

    name: str
    share: float | None
    percent: str
    value: str
    style: str


class Page:
    """Collects lines; nothing is printed before ``render``."""

    def __init__(self, width: int) -> None:
        self.width = max(60, min(width, WIDEST))
        self.lines: list[Text] = []

    def blank(self) -> None:
        """Leave one line free, never two."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def ends(self, left: Text, right: str) -> None:
        """Write a line with something at both of its ends; the left side is cut to fit."""
        room = self.width - len(right) - 2
        left.truncate(room, overflow="ellipsis")
        gap = " " * (self.width - left.cell_len - len(right))
        self.lines.append(Text.assemble(left, gap, (right, "dim")))

    def words(
        self,
        label: str,
        sentence: str,
        style: str = "",
        mark: str = "",
        most: int | None = None,
    ) -> None:
        """Write a sentence beside a label, wrapped, further lines below its beginning.

        mark: what stands before its first line. most: lines after which it is cut off.
        """
        room = self.width - GUTTER - len(mark)
        for at, line in enumerate(_wrapped(readable(sentence), room, most)):
            line = line.replace(_HELD, " ")
            self.lines.append(
                Text.assemble(
                    (f"{label if at == 0 else '':<{GUTTER}}", "bold"),
                    (mark if at == 0 else " " * len(mark), "bold yellow"),
                    (line, style),
                )
            )

    def bars(self, label: str, rows: Sequence[Row], falling: bool = False) -> None:
        """Write rows of name, percentage, value and a bar; a whole fills what room is left.

        falling: each bar begins where the one before it ended, as parts of one whole do.
        """
        if not rows:
            return
        before = 0.0
        names = max(len(row.name) for row in rows)
        percents = max(len(row.percent) for row in rows)
        values = max(len(row.value) for row in rows)
        room = max(10, self.width - GUTTER - names - percents - values - 6)
        for at, row in enumerate(rows):
            self.lines.append(
                Text.assemble(
                    (f"{label if at == 0 else '':<{GUTTER}}", "bold"),
                    f"{row.name:<{names}}  ",
                    (f"{row.percent:>{percents}}", "bold"),
                    f"  {row.value:>{values}}  ",
                    (" " * min(room - 1, int(before * room)) if falling else ""),
                    (bar(row.share, room), row.style),
                )
            )
            before += row.share or 0.0

    def table(
        self, label: str, rows: Sequence[Sequence[str]], left: int = 0, gives: int = 0
    ) -> None:
        """Write aligned columns, the first row as a heading.

        left: how many columns are aligned to the left; the others are to the right.
        gives: the column whose cells lose their beginnings when the table is too wide.
        """
        rows = [[readable(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        excess = sum(widths) + 2 * (len(widths) - 1) - (self.width - GUTTER)
        widths[gives] = max(8, widths[gives] - max(0, excess))
        for at, whole in enumerate(rows):
            row = [*whole[:gives], ending(whole[gives], widths[gives]), *whole[gives + 1 :]]
            cells = [
                f"{cell:<{width}}" if column < left else f"{cell:>{width}}"
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            line = Text.assemble(
                (f"{label if at == 0 else '':<{GUTTER}}", "bold"),
                ("  ".join(cells).rstrip(), "" if at else "dim"),
            )
            line.truncate(self.width, overflow="ellipsis")
            self.lines.append(line)

    def close_up(self, most: int) -> None:
        """Drop blank lines, from the end on, until no more than so many lines are left."""
        for at in range(len(self.lines) - 1, 0, -1):
            if len(self.lines) <= most:
                return
            if not self.lines[at].plain:
                del self.lines[at]

    def render(self, colour: bool, unicode: bool) -> str:
        """Return the page as text, with a newline at its end.

        Args:
            colour: with the escape sequences that terminals understand.
            unicode: with block characters; otherwise ASCII alone is added to what users named.
        """
        out = io.StringIO()
        console = Console(
            file=out,
            width=self.width,
            force_terminal=colour,
            color_system="standard" if colour else None,
            no_color=not colour,
            highlight=False,
            legacy_windows=False,
            force_jupyter=False,  # in a notebook rich would display by itself and leave no text
        )
        for line in self.lines:
            line.rstrip()
            console.print(line, soft_wrap=True)
        text = out.getvalue()
        return text if unicode else text.translate(_ASCII)


def ending(text: str, room: int) -> str:
    """Return a text whose beginning is left out where it is longer than the room."""
    return text if len(text) <= room else f"…{text[len(text) - room + 1 :]}"


def fitting(text: str, room: int) -> str:
    """Return a text whose end is left out where it takes more columns than the room."""
    if cell_len(text) <= room:
        return text
    return f"{set_cell_size(text, room - 1).rstrip()}…"


def _wrapped(sentence: str, room: int, most: int | None) -> list[str]:
    """Return the lines of a sentence; the last of so many ends with dots where more would follow.

    Characters that take two columns of a terminal are counted as two.
    """
    held = _hold_units(sentence)
    if cell_len(held) == len(held):
        lines = textwrap.wrap(held, room)
    else:
        lines = [
            line.plain.rstrip()
            for line in Text(held).wrap(Console(width=room), room, overflow="fold")
        ]
    if most is None or len(lines) <= most:
        return lines or [""]
    return [*lines[: most - 1], fitting(f"{lines[most - 1]} …", room)]


def _hold_units(sentence: str) -> str:
    """Keep a number and the word after it, its unit, on one line."""
    return re.sub(r"(?<=\d) (?=\S)", _HELD, sentence)


def bar(share: float | None, room: int) -> str:
    """Return a bar of blocks; a whole is ``room`` columns long, steps are an eighth of one."""
    if share is None:
        return ""
    eighths = round(min(1.0, max(0.0, share)) * room * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
