"""From an instruction of a code object to the user's source."""

from __future__ import annotations

import dis
from itertools import islice
from types import CodeType
from typing import Final

_JUMPS: Final = frozenset((*dis.hasjrel, *dis.hasjabs))
_MOST_JUMPS: Final = 8

Span = tuple[int, int, int, int]
"""First and last line, first and last column."""


def position(code: CodeType, instruction: int) -> tuple[int, Span | None]:
    """Return the line of an instruction, and where its source begins and ends.

    The second is None before Python 3.11, and where the interpreter was told to keep no columns.
    An instruction without a line (the jump back of a loop whose body ends with an ``if``, where a
    thread that only computes is mostly seen) stands at the one that has jumped or led to it.
    """
    instruction, line = _with_line(code, instruction)
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return line, None
    found = next(islice(positions(), instruction // 2, None), (None,) * 4)
    first, last, column, end_column = found
    if first is None or last is None or column is None or end_column is None:
        return line, None
    return line, (first, last, column, end_column)


def _with_line(code: CodeType, instruction: int) -> tuple[int, int]:
    """Return the instruction itself, or that which led to it and has a line; and the line."""
    for _ in range(_MOST_JUMPS):
        line = _line(code, instruction)
        if line is not None:
            return instruction, line
        before = _before(code, instruction)
        if before is None:
            break
        instruction = before
    return instruction, code.co_firstlineno


def _line(code: CodeType, instruction: int) -> int | None:
    for begin, end, number in code.co_lines():
        if begin <= instruction < end:
            return number
    return None


def _before(code: CodeType, instruction: int) -> int | None:
    """Return the last of those that jump here: it was passed on every way; else the one above."""
    jumped = above = None
    for one in dis.get_instructions(code):
        if one.offset >= instruction:
            break
        above = one.offset
        if one.opcode in _JUMPS and one.argval == instruction:
            jumped = one.offset
    return above if jumped is None else jumped
