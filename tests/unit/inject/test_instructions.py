"""From an instruction to its line: also where the compiler gave it none."""

from __future__ import annotations

import dis
import inspect
import sys
from types import CodeType
from typing import Any

import pytest

from hotlap.inject.conditions.instructions import position


def vocabulary(words: list[str]) -> list[str]:
    known: list[str] = []
    for word in words:
        if word not in known:
            known.append(word)
    return known


def nested(rows: list[list[int]]) -> int:
    total = 0
    for row in rows:
        for one in row:
            if one > 2:
                total -= 1
                if one % 2:
                    total += one
    return total


def unnumbered(code: CodeType) -> list[int]:
    lines: dict[int, int | None] = {}
    for begin, end, number in code.co_lines():
        lines.update(dict.fromkeys(range(begin, end, 2), number))
    return [one.offset for one in dis.get_instructions(code) if lines.get(one.offset) is None]


def line_of(function: Any, text: str) -> int:
    source, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(source) if text in line)


@pytest.mark.parametrize("function", [vocabulary, nested])
def test_no_instruction_of_a_loop_stands_at_the_head_of_its_function(function: Any) -> None:
    code = function.__code__
    body = [one.offset for one in dis.get_instructions(code) if one.offset > 8]
    for instruction in body:
        line, span = position(code, instruction)
        assert line > code.co_firstlineno
        if span is not None:
            assert span[0] <= line <= span[1]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the compiler of 3.11 leaves it out")
def test_a_jump_back_without_a_line_stands_at_the_test_before_it() -> None:
    code = vocabulary.__code__
    (jump,) = [
        one
        for one in unnumbered(code)
        if "JUMP_BACKWARD" in {i.opname for i in dis.get_instructions(code) if i.offset == one}
    ]
    line, span = position(code, jump)
    assert line == line_of(vocabulary, "not in known")
    assert span is not None


def test_a_made_up_code_without_lines_stands_at_its_head() -> None:
    code = vocabulary.__code__
    bare = code.replace(co_linetable=b"")
    assert position(bare, 40)[0] == code.co_firstlineno
