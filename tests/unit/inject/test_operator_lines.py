"""Operators that Python makes no call for are laid at their line by the source."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from hotlap.inject.conditions.operator_lines import OperatorLines

TEXT = """\
    import torch

    def forward(x, w):
        y = x @ w
        for row in y:
            a = row * 2
            b = a * 3 + a
        y[0] = -y[1]
        y += 1
        if (y > 0).all():
            return (lambda v: v * 9)(y)
        return [one - 1 for one in y]

    @torch.no_grad()
    def other(x):
        def inner(z):
            return z / 2
        return x * inner(x)

    q = torch.ones(2) * 3
    """


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(dedent(TEXT))
    return str(path)


def test_operators_in_the_order_of_the_source(path: str) -> None:
    course = OperatorLines().course(path, 3, "forward")
    course.called(3)
    names = [
        "mm",
        "mul",
        "mul",
        "add",
        "mul",
        "mul",
        "add",
        "select",
        "neg",
        "select",
        "add_",
        "gt",
    ]
    lines = [course.line(f"aten::{name}", None) for name in names]
    assert lines == [4, 6, 7, 7, 6, 7, 7, 8, 8, 8, 9, 10]


def test_calls_say_how_far_the_function_has_come(path: str) -> None:
    course = OperatorLines().course(path, 3, "forward")
    assert course.line("aten::mul", 7) == 6
    course.called(7)
    assert course.line("aten::mul", 9) == 7
    course.called(5)
    assert course.line("aten::mul", None) == 6
    assert course.line("aten::relu", None) is None
    assert course.line("aten::true_divide", None) is None


@pytest.mark.parametrize(
    ("first", "function", "name", "line"),
    [
        (14, "other", "mul", 18),
        (15, "other", "mul", 18),
        (16, "inner", "div", 17),
        (11, "<lambda>", "mul", 11),
        (12, "<listcomp>", "sub", 12),
        (1, "<module>", "mul", 20),
        (3, "other", "mul", None),
        (99, "forward", "mul", None),
    ],
)
def test_functions_are_told_apart(
    path: str, first: int, function: str, name: str, line: int | None
) -> None:
    assert OperatorLines().course(path, first, function).line(f"aten::{name}", None) == line


@pytest.mark.parametrize("content", [None, b"def f(:\n", b"\xff\xfe", b"# coding: none\n", b"\x00"])
def test_what_cannot_be_read_says_nothing(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "train.py"
    if content is not None:
        path.write_bytes(content)
    course = OperatorLines().course(str(path), 1, "<module>")
    course.called(3)
    assert course.line("aten::mul", 4) is None
