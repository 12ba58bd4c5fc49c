"""The inside uses the standard library only, and torch is nowhere imported early."""

from __future__ import annotations

from pathlib import Path

import pytest

from house.inside import INSIDE, foreign_imports, inside_files, torch_at_import
from house.source import python_files


def test_the_inside_imports_the_standard_library_only(checkout: Path) -> None:
    files = inside_files(checkout / "src" / "hotlap")
    assert {path.stem for path in files} >= {"errors", "handoff"}
    assert [words for path in files for words in foreign_imports(path)] == []


def test_nothing_imports_torch_early(checkout: Path) -> None:
    early = {
        path.name: torch_at_import(path)
        for path in python_files(checkout / "src" / "hotlap")
        if torch_at_import(path)
    }
    assert early == {}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("import psutil\n", ["bad.py:1: psutil at import"]),
        ("def f():\n    import numpy as np\n", ["bad.py:2: numpy in a function"]),
        ("import torch\n", ["bad.py:1: torch at import"]),
        ("class A:\n    from torch import nn\n", ["bad.py:2: torch at import"]),
        ("try:\n    import torch\nexcept ImportError:\n    pass\n", ["bad.py:2: torch at import"]),
        ("def f():\n    import torch\n\n\nimport json\n", []),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n", []),
        (
            "import typing\nif typing.TYPE_CHECKING:\n    x = 1\nelse:\n    import rich\n",
            ["bad.py:5: rich at import"],
        ),
    ],
)
def test_foreign_imports_are_told_apart(tmp_path: Path, text: str, seen: list[str]) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    assert foreign_imports(path) == seen
    assert len(torch_at_import(path)) == sum("torch" in words for words in seen)


def test_what_the_inside_imports_counts_as_inside(tmp_path: Path) -> None:
    for package in (*INSIDE[1:], "machine"):
        (tmp_path / package).mkdir()
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "probe" / "clock.py").write_text("from hotlap.machine import gauge\n")
    (tmp_path / "machine" / "gauge.py").write_text("import hotlap.machine.deep\n")
    (tmp_path / "machine" / "deep.py").write_text("import psutil\n")
    (tmp_path / "machine" / "other.py").write_text("import psutil\n")
    names = [path.name for path in inside_files(tmp_path)]
    assert names == ["__init__.py", "deep.py", "gauge.py", "clock.py"]
