"""The report verb on a record that is handed to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hotlap.cli.report import command
from hotlap.errors import WrongUse
from unit.report.gallery import RECORDS


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str | None]:
    """Let the store find one run; return the names that it was asked for."""
    names: list[str | None] = []

    class Found:
        def find(self, name: str | None) -> Path:
            names.append(name)
            return tmp_path

    monkeypatch.setattr("hotlap.runs.store.open_store", lambda start: Found())  # noqa: ARG005
    monkeypatch.setattr("hotlap.runs.reading.read_run", lambda path: RECORDS["workers"]())  # noqa: ARG005
    return names


def test_the_latest_run_as_text(asked: list[str | None]) -> None:
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 0
    assert asked == [None]
    assert "Photos, 2 workers" in result.output
    assert "\x1b[" not in result.output


def test_json_alone_on_stdout(asked: list[str | None]) -> None:
    result = CliRunner().invoke(command, ["ab12", "--json", "-"])
    assert asked == ["ab12"]
    assert json.loads(result.output)["step"]["steps"] == 400


def test_json_to_a_file_beside_the_text(asked: list[str | None], tmp_path: Path) -> None:
    assert asked == []
    file = tmp_path / "report.json"
    result = CliRunner().invoke(command, ["--json", str(file)])
    assert "Photos, 2 workers" in result.output
    assert json.loads(file.read_text())["format"] == 1


def test_a_file_that_cannot_be_written_is_wrong_use(
    asked: list[str | None], tmp_path: Path
) -> None:
    assert asked == []
    result = CliRunner().invoke(command, ["--json", str(tmp_path / "no" / "such" / "file")])
    assert isinstance(result.exception, WrongUse)
    assert "name another file" in str(result.exception)
