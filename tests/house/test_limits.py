"""Files, lines, functions and signatures stay small, and each check can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from house.limits import complaints, prints
from house.source import python_files

ROOTS = ("src", "tests", "benchmarks", "examples")
STAND_INS = ("tests/scripts/**", "tests/corpus/6[2-9]_*", "tests/corpus/[78][0-9]_*")
"""Training scripts that stand in for other people's code, some of them broken on purpose."""


def test_every_file_is_within_the_limits(checkout: Path) -> None:
    stand_ins = {folder for pattern in STAND_INS for folder in checkout.glob(pattern)}
    files = [
        path
        for path in python_files(*(checkout / root for root in ROOTS))
        if path.parent not in stand_ins
    ]
    assert len(files) > 10
    assert [words for path in files for words in complaints(path, checkout)] == []


def test_only_the_command_line_prints(checkout: Path) -> None:
    package = checkout / "src" / "hotlap"
    printing = [
        f"{path.relative_to(package)}:{line}"
        for path in python_files(package)
        if path.relative_to(package).parts[0] != "cli"
        for line in prints(path)
    ]
    assert printing == []


@pytest.mark.parametrize(
    ("name", "text", "seen"),
    [
        ("long.py", "x = 1\n" * 401, "401 lines, more than 400"),
        ("wide.py", f"x = '{'a' * 95}'\n", "101 characters, more than 100"),
        ("deep.py", "def f():\n" + "    x = 1\n" * 60, "f has 61 lines, more than 60"),
        ("many.py", "def f(a, b, c, d, /, e, *, f, g, h, i): ...\n", "takes 9 parameters"),
        ("rest.py", "def f(a, b, c, d, e, f, g, *h, **i): ...\n", "takes 9 parameters"),
        ("inner.py", "class A:\n    def f(self, a, b, c, d, e, f, g, h, i): ...\n", "takes 9"),
        ("utils.py", "", "no module or folder is called utils"),
        ("helpers/clock.py", "", "no module or folder is called helpers"),
        ("common.py", "", "no module or folder is called common"),
    ],
)
def test_a_breach_is_seen(tmp_path: Path, name: str, text: str, seen: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    found = complaints(path, tmp_path)
    assert len(found) == 1
    assert seen in found[0]


def test_exactly_at_the_limits_passes(tmp_path: Path) -> None:
    path = tmp_path / "good.py"
    function = "def f(self, a, b, c, d, e, f, g, h):\n" + "    x = 1\n" * 59
    ignored = "import torch  # type: ignore[import-untyped]  # " + "why " * 30 + "\n"
    path.write_text(ignored + function + f"y = '{'a' * 94}'\n" + "\n" * 338)
    assert complaints(path, tmp_path) == []


def test_a_print_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "loud.py"
    path.write_text('"""print(0)"""\n\nprint(1)\n')
    assert prints(path) == [3]
