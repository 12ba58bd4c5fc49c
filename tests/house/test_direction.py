"""Imports go the way that docs/architecture.md says, and the check of it can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from house.direction import Row, complaints, table, table_complaints

ROWS = {
    "errors": Row(0, "errors", frozenset()),
    "probe": Row(1, "probe", frozenset({"errors"})),
    "cli": Row(2, "cli", None),
}


def test_every_import_follows_the_table(checkout: Path) -> None:
    rows = table((checkout / "docs" / "architecture.md").read_text())
    assert complaints(checkout / "src" / "hotlap", rows) == []


def test_the_table_goes_downwards_only(checkout: Path) -> None:
    assert table_complaints(table((checkout / "docs" / "architecture.md").read_text())) == []


def test_the_table_is_read_as_written() -> None:
    text = "| level | package | may import |\n|---|---|---|\n| 0 | `errors` | |\n"
    text += "| 1 | `probe` | `errors` |\n| 2 | `cli` | anything |\n"
    assert table(text) == ROWS


def test_an_upward_or_unknown_row_is_seen() -> None:
    rows = {**ROWS, "errors": Row(0, "errors", frozenset({"probe", "ghost"}))}
    assert table_complaints(rows) == [
        "errors may import ghost, which has no row",
        "errors may import probe, whose row is not above it",
    ]


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("import hotlap.cli.run", "may not import cli"),
        ("from hotlap.cli import run", "may not import cli"),
        ("from hotlap import cli", "may not import cli"),
        ("from hotlap import measure", "may not import __init__"),
        ("def f():\n    from hotlap.cli import run", "may not import cli"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import hotlap.cli", "may not"),
        ("from importlib import import_module\nimport_module('hotlap.cli')", "may not import cli"),
        ("from . import clock", "relative import"),
    ],
)
def test_a_forbidden_import_is_seen_in_every_form(tmp_path: Path, line: str, seen: str) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe" / "bad.py").write_text(line + "\n")
    found = complaints(tmp_path, ROWS)
    assert len(found) == 1
    assert seen in found[0]
    assert found[0].startswith("probe/bad.py:")


def test_allowed_imports_pass(tmp_path: Path) -> None:
    (tmp_path / "probe").mkdir()
    (tmp_path / "cli").mkdir()
    (tmp_path / "errors.py").write_text("import json\n")
    (tmp_path / "__main__.py").write_text("from hotlap.cli import main\n")
    (tmp_path / "cli" / "run.py").write_text("from hotlap.probe import clock\n")
    good = "from hotlap import __version__\nfrom hotlap.errors import E\nimport hotlap.probe.x\n"
    (tmp_path / "probe" / "clock.py").write_text(good)
    assert complaints(tmp_path, ROWS) == []


def test_a_package_without_a_row_is_seen(tmp_path: Path) -> None:
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "__init__.py").write_text("")
    assert complaints(tmp_path, ROWS) == [
        "extra/__init__.py: package extra has no row in the table"
    ]
