"""``hotlap runs``: what it lists and what it removes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.cli import main
from hotlap.cli.runs import in_words, size_of
from hotlap.errors import WrongUse
from hotlap.runs.store import KEEP_BYTES, make_run, open_store, write_manifest


@pytest.fixture
def three_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make a start directory with three ended runs; return their ids, oldest first."""
    monkeypatch.chdir(tmp_path)
    store = open_store(tmp_path)
    for number in range(3):
        run = make_run(store.runs / f"20260101-00000{number}-abcd")
        manifest = {
            "format": 1,
            "started": f"2026-01-01T00:00:0{number}+00:00",
            "command": ["python", "train.py", "--name", "a b"],
            "exit_code": None if number == 2 else number,
            "exit_ns": 1,
            "steps": None if number == 2 else 100 * number,
        }
        write_manifest(run, manifest)
    return [run.id for run in store.all()]


def test_list_shows_every_run_and_what_is_unknown(
    three_runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "list"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["ID", "STARTED", "STEPS", "EXIT", "SIZE", "COMMAND"]
    assert [line.split()[0] for line in lines] == three_runs
    assert [line.split()[2:4] for line in lines] == [["0", "0"], ["100", "1"], ["-", "-"]]
    assert all(line.endswith("python train.py --name 'a b'") for line in lines)


def test_list_of_nothing_says_how_to_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["runs", "list"]) == 0
    assert "hotlap run train.py" in capsys.readouterr().out


def test_prune_removes_the_oldest_and_a_dry_run_nothing(
    three_runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "prune", "--keep-runs", "1", "--dry-run"]) == 0
    assert "Would remove 2 runs" in capsys.readouterr().out
    assert [run.id for run in open_store(tmp_path).all()] == three_runs
    assert main(["runs", "prune", "--keep-runs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "Removed 2 runs" in printed
    assert [run in printed for run in three_runs] == [True, True, False]
    assert [run.id for run in open_store(tmp_path).all()] == three_runs[2:]


def test_prune_by_size_keeps_the_newest(
    three_runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "prune", "--keep-size", "0"]) == 0
    assert "Removed 2 runs" in capsys.readouterr().out
    assert [run.id for run in open_store(tmp_path).all()] == three_runs[2:]


@pytest.mark.parametrize(
    ("words", "size_bytes"),
    [("0", 0), ("4096", 4096), ("500MB", 500_000_000), ("1.5k", 1500), ("2 GiB", KEEP_BYTES)],
)
def test_sizes_are_read(words: str, size_bytes: int) -> None:
    assert size_of(words) == size_bytes


@pytest.mark.parametrize("words", ["", "GB", "-1MB", "2 parsecs", "1iB"])
def test_what_is_no_size_is_refused(words: str) -> None:
    with pytest.raises(WrongUse, match="is no size"):
        size_of(words)


def test_sizes_are_told_in_decimal_units() -> None:
    assert [in_words(size) for size in (0, 999, 1000, 2_500_000)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "2.5 MB",
    ]
