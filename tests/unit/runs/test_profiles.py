"""Profiles, collectors, sample clocks and operators: read whole, or said to be damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotlap.runs import layout
from hotlap.runs.frames import encode_json, header
from hotlap.values.record import Place, Process
from unit.runs.contents import Run, ticks

SECOND = 1_000_000_000
PROFILE: dict[str, Any] = {
    **{"pid": 7, "began_ns": 0, "ended_ns": 16 * SECOND, "role": "worker", "hz": 100.0},
    **{"looks": 4, "late": 1, "late_ns": 5, "cost_ns": 6, "files": ["train.py", "net.py"]},
    **{"begin_ns": 0, "slice_ns": SECOND},
    "names": [["train.py", 3, "f"], ["train.py", 9, "<module>"], "train.f"],
    "rows": [
        {
            **{"phase": "fetch", "frames": [0, 1], "span": [3, 3, 4, 9], "leaf": 2},
            **{"samples": 4, "ns": 100, "split": [50, 10, 5], "slices": [[0, 1], [15, 3]]},
        }
    ],
}
COLLECTOR: dict[str, Any] = {
    **{"pid": 7, "begin_ns": 0, "worker": False, "ns": 30, "collections": 3, "longest_ns": 20},
    "by_generation": {"0": 2, "2": 1},
    "by_phase": {"forward": {"collections": 3, "ns": 30}},
}
CLOCK: dict[str, Any] = {
    **{"pid": 7, "begin_ns": 0, "worker": True, "count": 3, "total_ns": 30, "slowest_ns": 20},
    **{"together": 0, "histogram": {"10": 2, "20": 1}},
}
OPERATOR: dict[str, Any] = {
    **{"place": ["train.py", 3, "f"], "until": None, "phase": "backward", "name": "aten::mm"},
    **{"forward": ["net.py", 4, "g"], "calls": 1.5, "ns": 2, "shapes": 1, "dtypes": ["float32"]},
}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    path = tmp_path / "20260101-000000-aaaa"
    path.mkdir()
    return Run(path)


def read(run: Run, *content: bytes) -> Process:
    """Return the only process, its first step at 0, the last record at 16 s."""
    first = encode_json("frst", {"at_ns": 0, "accounts": []})
    run.process(first, ticks(1), *content)
    return run.only()


def test_an_entry_is_what_was_written(run: Run) -> None:
    process = read(run, encode_json("prof", PROFILE))
    (entry,) = process.profile
    assert run.damage() == ()
    assert (entry.role, entry.phase, entry.leaf, entry.samples) == ("worker", "fetch", "train.f", 4)
    assert entry.place == Place("train.py", 3, "f")
    assert entry.callers == (Place("train.py", 9, "<module>"),)
    assert (entry.span, entry.expression) == ((3, 3, 4, 9), None)
    assert (entry.ns, entry.working_ns, entry.runqueue_ns, entry.blocked_ns) == (100, 20, 10, 70)
    assert entry.over_time == (1, *[0] * 14, 3)
    assert process.profile_facts["files"] == ("train.py", "net.py")
    assert process.profile_facts["worker"]["cost_ns"] == 6


def test_the_last_table_of_a_process_counts_and_processes_add_up(run: Run) -> None:
    later = {**PROFILE, "rows": [{**PROFILE["rows"][0], "samples": 9, "ns": 200}]}
    other = {**PROFILE, "pid": 8, "looks": 1}
    tables = (encode_json("prof", one) for one in (PROFILE, later, other))
    (entry,) = (process := read(run, *tables)).profile
    assert (entry.samples, entry.ns) == (13, 300)
    assert process.profile_facts["worker"]["processes"] == 2
    assert process.profile_facts["worker"]["looks"] == 5


def test_the_trainers_table_lies_in_a_file_of_its_own(run: Run) -> None:
    read(run)
    (folder,) = (run.path / layout.PROCESSES).iterdir()
    trainer = {**PROFILE, "role": "trainer"}
    (folder / layout.PROFILE_FILE).write_bytes(header("profile") + encode_json("prof", trainer))
    assert run.only().profile[0].role == "trainer"


def test_collectors_of_workers_stand_apart(run: Run) -> None:
    workers = [{**COLLECTOR, "pid": pid, "worker": True} for pid in (8, 9)]
    process = read(run, *(encode_json("gcol", one) for one in (COLLECTOR, *workers)))
    found = process.collector
    assert (found["ns"], found["collections"], found["longest_ns"]) == (30, 3, 20)
    assert found["by_generation"] == {0: 2, 2: 1}
    assert found["workers"]["ns"] == 60
    assert found["workers"]["by_phase"] == {"forward": {"collections": 6, "ns": 60}}


def test_sample_clocks_add_up(run: Run) -> None:
    other = {**CLOCK, "pid": 8, "slowest_ns": 50, "histogram": {"10": 3}}
    clock = read(run, *(encode_json("smpl", one) for one in (CLOCK, other))).sample_clock
    assert clock == {
        **{"count": 6, "total_ns": 60, "together": 0, "slowest_ns": 50},
        "histogram": {10: 5, 20: 1},
    }


def test_operators(run: Run) -> None:
    (one,) = read(run, encode_json("oper", {"steps": 3, "rows": [OPERATOR]})).operators
    assert (one.place, one.forward) == (Place("train.py", 3, "f"), Place("net.py", 4, "g"))
    assert (one.name, one.calls, one.ns, one.dtypes) == ("aten::mm", 1.5, 2, ("float32",))


def test_a_run_without_them_has_none(run: Run) -> None:
    process = read(run)
    assert (process.profile, process.operators) == ((), ())
    assert process.profile_facts == process.collector == process.sample_clock == {}


def _with_row(**more: Any) -> dict[str, Any]:
    return {**PROFILE, "rows": [{**PROFILE["rows"][0], **more}]}


@pytest.mark.parametrize(
    ("tag", "content"),
    [
        *[("prof", {**PROFILE, name: None}) for name in PROFILE if name not in ("begin_ns", "hz")],
        *[("prof", _with_row(**{name: "x"})) for name in PROFILE["rows"][0] if name != "phase"],
        ("prof", _with_row(phase=3)),
        ("prof", _with_row(frames=[9])),
        ("prof", _with_row(frames=[2])),
        ("prof", _with_row(leaf=0)),
        ("prof", _with_row(span=[1, 2])),
        ("prof", _with_row(split=[1, 2, 3])),
        ("prof", _with_row(slices=[[0]])),
        ("prof", _with_row(slices=[[0, "x"]])),
        ("prof", []),
        *[("gcol", {**COLLECTOR, name: "x"}) for name in COLLECTOR if name != "worker"],
        ("gcol", {**COLLECTOR, "by_phase": {"forward": {"ns": "x"}}}),
        *[("smpl", {**CLOCK, name: "x"}) for name in CLOCK if name != "worker"],
        *[
            ("oper", {"rows": [{**OPERATOR, name: {"x": 1}}]})
            for name in OPERATOR
            if name != "dtypes"
        ],
        ("oper", {"rows": [{**OPERATOR, "dtypes": [3]}]}),
        ("oper", None),
    ],
)
def test_what_is_none_is_damage(run: Run, tag: str, content: Any) -> None:
    process = read(run, encode_json(tag, content))
    assert (process.profile, process.operators) == ((), ())
    assert process.collector == process.sample_clock == {}
    assert len(run.damage()) == 1
