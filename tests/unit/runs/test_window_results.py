"""Which of the loaders' work belongs to a window, and frames that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotlap.runs.frames import encode_json, header
from hotlap.runs.reading import read_run
from hotlap.runs.store import write_manifest
from hotlap.runs.window_results import measured_of, with_splits
from hotlap.values.phase import ACCOUNTS
from hotlap.values.record import Fetches
from unit.runs.contents import FETCHES, HELLO

RESULT: dict[str, Any] = {
    "kind": "drain",
    "workers": None,
    "begin_ns": 1000,
    "end_ns": 3000,
    "steps": 0,
    "batches": 3,
    "samples": 24,
    "accounts": [0] * len(ACCOUNTS),
    "step_ns": [10, 20],
    "split": {},
    "ended_by": "steps",
    "notes": ["a note"],
    "segments": [],
    "loaders": [0],
    "datasets": ["Photos"],
}


def fetches(begin_ns: int, **other: Any) -> Fetches:
    """Make a record of a batch that took 100 ns."""
    return Fetches(**{**FETCHES, "begin_ns": begin_ns, "end_ns": begin_ns + 100, **other})


def wall(*records: Fetches, **result: Any) -> int | None:
    """Return the wall time that a window is given of these records."""
    (one,) = with_splits([measured_of({**RESULT, **result})], records)
    return one.split.get("wall_ns")


def test_a_record_belongs_where_its_middle_lies() -> None:
    assert wall(fetches(940)) is None
    assert wall(fetches(950)) == 100
    assert wall(fetches(2940)) == 100
    assert wall(fetches(2950)) is None


def test_what_lies_between_segments_is_left_out() -> None:
    records = [fetches(at) for at in (1000, 1500, 2000)]
    assert wall(*records) == 300
    assert wall(*records, segments=[[1000, 1200], [1900, 2200]]) == 200


def test_other_loaders_are_left_out() -> None:
    assert wall(fetches(1500, loader=1, worker=None)) is None
    assert wall(fetches(1500, loader=0, worker=None)) == 100
    assert wall(fetches(1500, dataset="Validation")) is None


def test_an_unknown_part_is_unknown_in_the_sum() -> None:
    records = [fetches(1500), fetches(1600, runqueue_ns=None)]
    (one,) = with_splits([measured_of(RESULT)], records)
    assert one.split["runqueue_ns"] is None
    assert one.split["samples"] == 16
    assert one.split["batches"] == 2


@pytest.mark.parametrize(
    "change",
    [
        {"begin_ns": -1},
        {"kind": 3},
        {"samples": "many"},
        {"segments": [[1]]},
        {"segments": 5},
        {"step_ns": ["x"]},
        {"loaders": None},
    ],
    ids=str,
)
def test_a_frame_that_is_none_is_damage(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = tmp_path / "proc" / "one"
    folder.mkdir(parents=True)
    write_manifest(tmp_path, {"format": 1, "command": ["train"], "spawn_ns": 1})
    frames = [encode_json("helo", HELLO), encode_json("winr", {**RESULT, **change})]
    sound = encode_json("winr", RESULT)
    (folder / "self.rec").write_bytes(b"".join([header("process"), *frames, sound]))
    record = read_run(tmp_path)
    assert len(record.damage) == 1
    assert "'winr'" in record.damage[0]
    (process,) = record.processes
    assert [one.kind for one in process.windows_measured] == ["drain"]


def test_proofs_of_workers_join_those_of_the_trainer(tmp_path: Path) -> None:
    folder = tmp_path / "proc" / "one"
    folder.mkdir(parents=True)
    write_manifest(tmp_path, {"format": 1, "command": ["train"], "spawn_ns": 1})
    not_yet, done = {"acted": False, "proof": "nothing"}, {"acted": True, "proof": "did"}
    own = [encode_json("helo", HELLO), encode_json("sett", {"a": not_yet, "b": done})]
    (folder / "self.rec").write_bytes(b"".join([header("process"), *own]))
    worker = encode_json("sett", {"a": done, "b": not_yet})
    (folder / "worker-Photos-0.rec").write_bytes(header("worker") + worker)
    (process,) = read_run(tmp_path).processes
    assert process.settings_proof == {"a": done, "b": done}
