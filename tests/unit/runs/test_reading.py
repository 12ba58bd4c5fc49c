"""A run directory as a record: whatever lies in it, there is a record or one plain refusal."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hotlap.errors import UnreadableRun
from hotlap.runs.frames import encode, encode_json, encode_rows, header
from hotlap.runs.reading import read_run
from hotlap.runs.store import write_manifest
from hotlap.values.phase import ACCOUNTS
from hotlap.values.record import Place
from unit.runs.contents import (
    COLUMNS,
    FETCHES,
    HELLO,
    LOADER,
    TOUCH,
    WIDTH,
    WINDOW,
    Run,
    row,
    ticks,
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    path = tmp_path / "20260101-000000-aaaa"
    path.mkdir()
    return Run(path)


# -- what is there is read ------------------------------------------------------------------------


def test_a_bare_run_has_no_processes_and_no_damage(run: Run) -> None:
    record = read_run(run.path)
    assert (record.processes, record.samples, record.seen, record.damage) == ((), (), (), ())
    assert (record.exit_ns, record.exit_code) == (None, None)


def test_one_of_everything(run: Run) -> None:
    run.process(
        encode_json("fact", {"torch": "2.13.0"}),
        encode_json("frst", {"at_ns": 500, "accounts": list(range(WIDTH))}),
        ticks(1, 2),
        encode_json("wind", WINDOW),
        encode_json("load", LOADER),
        encode_json("tuch", [TOUCH]),
        encode_json("devc", [{"phase": "forward", "steps": 2, "ns": 9}]),
        encode_json("falt", {"site": "save", "error": "E", "at_ns": 5}),
        encode_json("stat", {"forwards": 2, "unpack_ns": 4}),
        encode_json("fact", {"device": "cpu", "rank": 3}),
        encode_json("bye.", {"end_ns": 9000, "after_last_tick": [1] * WIDTH}),
    )
    process = run.only()
    assert run.damage() == ()
    assert (process.role, process.torch, process.device) == ("trainer", "2.13.0", "cpu")
    assert process.rank == 3, "what torch.distributed says beats the variables"
    assert process.before_first_step == tuple(range(WIDTH))
    assert (process.first_step_ns, process.end_ns, process.unpack_ns) == (500, 9000, 4)
    assert [tick.number for tick in process.ticks] == [1, 2]
    assert process.windows[0].histogram == {100: 2}
    assert process.loaders[0].place == Place("train.py", 3, "main")
    assert process.device_phases[0].ns == 9
    assert process.touches[0].count == 3
    assert process.faults[0].site == "save"


def test_many_processes_and_their_workers(run: Run) -> None:
    for rank in range(3):
        name = f"node{rank}-{rank}-7-100"
        run.process(ticks(1), name=name)
        for worker in range(2):
            fetched = encode_json("ftch", {**FETCHES, "worker": worker})
            run.process(fetched, fetched, name=name, file=f"worker-Photos-{worker}.rec")
    processes = read_run(run.path).processes
    assert len(processes) == 3
    for process in processes:
        assert [one.worker for one in process.fetches] == [0, 0, 1, 1]


def test_the_last_of_several_provisional_windows_wins(run: Run) -> None:
    later = {**WINDOW, "ticks": 9, "end_ns": 9000}
    following = {**WINDOW, "first_tick": 10}
    run.process(*(encode_json("wind", one) for one in (WINDOW, later, following)))
    assert [(one.first_tick, one.ticks) for one in run.only().windows] == [(1, 9), (10, 2)]


def test_detail_that_overlaps_is_kept_once_and_in_order(run: Run) -> None:
    run.process(ticks(1, 2, 3), ticks(7, 8), ticks(2, 3, 4, ns=5))
    found = run.only().ticks
    assert [tick.number for tick in found] == [1, 2, 3, 4, 7, 8]
    assert [tick.accounts[0] for tick in found] == [1, 5, 5, 5, 1, 1]


def test_a_run_that_still_grows_gives_more_each_time(run: Run) -> None:
    path = run.process(ticks(1), encode_json("wind", WINDOW), ticks(2))
    data = path.read_bytes()
    seen = []
    for cut in range(0, len(data) + 1, 7):
        path.write_bytes(data[:cut])
        processes = read_run(run.path).processes
        seen.append(sum(len(process.ticks) for process in processes))
    path.write_bytes(data)
    assert seen == sorted(seen)
    assert len(run.only().ticks) == 2


def test_columns_are_found_by_name_whatever_their_order_and_number(run: Run) -> None:
    names = ("new_account", *reversed(COLUMNS))
    values = (99, *reversed(row(1)))
    run.process(encode_rows("tick", names, [values]))
    assert run.only().ticks[0].end_ns == 1000
    fewer = [name for name in COLUMNS if name != "compile"]
    values = tuple(v for name, v in zip(COLUMNS, row(1), strict=True) if name != "compile")
    run.process(encode_rows("tick", fewer, [values]))
    assert run.only().ticks[0].accounts[ACCOUNTS.index("compile")] == 0


def test_a_later_minor_version_may_write_more(run: Run) -> None:
    run.process(
        encode_json("wind", {**WINDOW, "energy": 5, "accounts": [10] * (WIDTH + 1)}),
        encode_json("load", {**LOADER, "colour": "red"}),
        encode_json("ftch", {**FETCHES, "colour": "red"}),
        encode_json("newt", {"unknown": "tag"}),
        encode("bin.", b"\xff\x00"),
    )
    process = run.only()
    assert run.damage() == ()
    assert len(process.windows[0].accounts) == WIDTH
    assert (len(process.loaders), len(process.fetches)) == (1, 1)


def test_an_earlier_version_has_fewer_accounts(run: Run) -> None:
    run.process(encode_json("wind", {**WINDOW, "accounts": [10] * (WIDTH - 2)}))
    assert run.only().windows[0].accounts == (*[10] * (WIDTH - 2), 0, 0)


def test_a_newer_major_is_refused_in_words(run: Run) -> None:
    path = run.process(ticks(1))
    path.write_bytes(encode_json("head", {"major": 2, "minor": 0, "kind": "process"}))
    with pytest.raises(UnreadableRun, match=r"format 2, this hotlap reads 1: update hotlap"):
        read_run(run.path)


# -- what is missing or damaged -------------------------------------------------------------------


def test_a_process_without_hello_is_left_out(run: Run) -> None:
    folder = run.path / "proc" / "node1-x-7-100"
    folder.mkdir(parents=True)
    assert read_run(run.path).processes == ()
    (folder / "worker-Photos-0.rec").write_bytes(header("worker") + encode_json("ftch", FETCHES))
    (folder / "self.rec").write_bytes(b"")
    assert read_run(run.path).processes == ()


def test_a_file_that_may_not_be_read_is_told(run: Run) -> None:
    path = run.process(ticks(1))
    worker = path.with_name("worker-Photos-0.rec")
    worker.mkdir()  # the superuser may read everything but a folder
    assert len(run.only().ticks) == 1
    (told,) = run.damage()
    assert told.startswith("node1-x-7-100/worker-Photos-0.rec: ")


def test_stray_files_among_the_processes_are_no_error(run: Run) -> None:
    run.process(ticks(1))
    (run.path / "proc" / "notes.txt").write_text("mine")
    (run.path / "proc" / "node1-x-7-100" / "notes.txt").write_text("mine")
    assert run.only().role == "trainer"
    assert run.damage() == ()


JUNK: list[Any] = [None, True, 5, -1, 1.5, "text", [], [1], ["a"], {}, {"a": 1}, [[]], {"": None}]


@pytest.mark.parametrize(
    "tag", "head helo fact frst bye. stat wind load ftch tuch devc falt".split()
)
@pytest.mark.parametrize("value", JUNK, ids=map(repr, JUNK))
def test_a_frame_with_other_content_is_told_at_most(run: Run, tag: str, value: Any) -> None:
    run.process(ticks(1), encode_json(tag, value), ticks(2))
    record = read_run(run.path)
    assert len(record.processes) == 1
    assert len(record.processes[0].ticks) == 2
    assert all(tag in words for words in record.damage)


FIELDS = [
    *(("wind", WINDOW, name) for name in WINDOW),
    *(("load", LOADER, name) for name in LOADER),
    *(("ftch", FETCHES, name) for name in FETCHES),
    *(("tuch", TOUCH, name) for name in TOUCH),
    *(("helo", HELLO, name) for name in HELLO),
]


@pytest.mark.parametrize(("tag", "good", "name"), FIELDS, ids=lambda v: v if type(v) is str else "")
def test_a_field_of_another_type_is_told_and_nowhere_believed(
    run: Run, tag: str, good: dict[str, Any], name: str
) -> None:
    allowed = (type(good[name]), type(None), int if good[name] is None else type(None))
    wrong = [value for value in (*JUNK, "x" * 500) if type(value) not in allowed]
    nullable = {"loader", "place", "rank", "local_rank", "world_size", "size_bytes"}
    for value in wrong if name in nullable or good[name] is not None else []:
        changed: Any = {**good, name: value}
        run.process(ticks(1), encode_json(tag, [changed] if tag == "tuch" else changed))
        record = read_run(run.path)
        (process,) = record.processes
        for kept in (process.windows, process.loaders, process.fetches, process.touches):
            for one in kept:
                raise AssertionError(f"{name} was taken from {value!r}: {one}")
        assert len(process.ticks) == 1
        assert len(record.damage) == 1


@pytest.mark.parametrize("name", sorted({*WINDOW, *FETCHES, *TOUCH} - {"size_bytes", "base_seed"}))
def test_a_missing_field_is_told(run: Run, name: str) -> None:
    parts = []
    for tag, good in (("wind", WINDOW), ("ftch", FETCHES), ("tuch", TOUCH)):
        if name in good and name != "dataset":
            less: Any = {key: value for key, value in good.items() if key != name}
            parts.append(encode_json(tag, [less] if tag == "tuch" else less))
    run.process(*parts)
    record = read_run(run.path)
    assert len(record.damage) == len(parts)
    assert all(name in words for words in record.damage)


@pytest.mark.parametrize("name", [name for name, one in WINDOW.items() if type(one) is int])
def test_a_negative_count_or_time_is_told(run: Run, name: str) -> None:
    run.process(encode_json("wind", {**WINDOW, name: -5}))
    assert run.only().windows == ()
    (told,) = run.damage()
    assert told == f"node1-x-7-100/self.rec: frame 'wind': {name} is -5, a negative number"


@pytest.mark.parametrize("rule", [0, -1, 5, 2**40])
def test_a_rule_that_nobody_knows_is_told(run: Run, rule: int) -> None:
    run.process(encode_rows("tick", COLUMNS, [row(1, rule=rule)]))
    assert run.only().ticks == ()
    assert run.damage() == (f"node1-x-7-100/self.rec: frame 'tick': rule {rule} is unknown",)


@pytest.mark.parametrize("missing", COLUMNS)
def test_a_table_without_one_of_its_columns(run: Run, missing: str) -> None:
    names = [name for name in COLUMNS if name != missing]
    values = [v for name, v in zip(COLUMNS, row(1), strict=True) if name != missing]
    run.process(encode_rows("tick", names, [values]))
    found = run.only().ticks
    assert len(found) == (missing in ACCOUNTS)
    assert (run.damage() == ()) == (missing in ACCOUNTS)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"{",
        b"[" * 100_000,
        b"nul",
        b'{"a":' * 100_000,
        b"1" * 5000,
        b'"\xed\xa0\x80"',
    ],
    ids=range(8),
)
@pytest.mark.parametrize("tag", ["head", "helo", "wind", "tick", "tuch"])
def test_a_payload_that_is_no_json_is_told(run: Run, tag: str, payload: bytes) -> None:
    run.process(encode(tag, payload), ticks(1))
    record = read_run(run.path)
    assert len(record.processes[0].ticks) == 1
    assert len(record.damage) == 1


@pytest.mark.parametrize("value", JUNK, ids=map(repr, JUNK))
def test_samples_of_the_machine_are_objects(run: Run, value: Any) -> None:
    good = {"at_ns": 5, "cores_busy_ns": []}
    parts = [header("machine"), *(encode_json("smpl", one) for one in (good, value, good))]
    (run.path / "machine.rec").write_bytes(b"".join(parts) + encode("smpl", b"{"))
    samples = read_run(run.path).samples
    assert (samples[0], samples[-1]) == (good, good)
    assert all(isinstance(one, dict) for one in samples)


@pytest.mark.parametrize("value", JUNK, ids=map(repr, JUNK))
@pytest.mark.parametrize(
    "name",
    "id command cwd host hotlap_version started spawn_ns exit_ns exit_code environment "
    "machine".split(),
)
def test_a_manifest_with_other_content_gives_a_record(run: Run, name: str, value: Any) -> None:
    write_manifest(run.path, {"format": 1, name: value})
    record = read_run(run.path)
    assert all(isinstance(word, str) for word in record.command)
    assert isinstance(record.environment, dict)
    assert isinstance(record.facts, dict)
    assert isinstance(record.spawn_ns, int)
    assert isinstance(record.id + record.cwd + record.host + record.started, str)
    assert record.exit_ns is None or isinstance(record.exit_ns, int)


def test_the_list_of_interpreters_bears_torn_and_foreign_lines(run: Run) -> None:
    lines: list[Any] = [{"pid": 1, "argv": ["python"]}, {"pid": 1, "torch": True}, {"pid": 2}]
    text = "\n".join(map(json.dumps, [*lines, *JUNK, {"pid": "x"}, {"pid": []}, {"torch": 1}]))
    (run.path / "seen.jsonl").write_bytes(text.encode() + b'\n{"pid": 3, "to\n\xff\n')
    seen = read_run(run.path).seen
    assert seen == ({"torch": True, "pid": 1, "argv": ["python"]}, {"torch": False, "pid": 2})


def test_whatever_is_flipped_there_is_a_record(run: Run) -> None:
    path = run.process(
        encode_json("frst", {"at_ns": 500, "accounts": [1] * WIDTH}),
        ticks(1, 2),
        encode_json("wind", WINDOW),
    )
    data = bytearray(path.read_bytes())
    for at in range(0, len(data), 3):
        data[at] ^= 0x10
        path.write_bytes(bytes(data))
        data[at] ^= 0x10
        record = read_run(run.path)
        assert len(record.damage) == 1, at
        assert len(record.processes) <= 1


def test_no_run_at_all(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRun, match=r"holds no run\.json"):
        read_run(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableRun, match="cannot be read"):
        read_run(tmp_path / "pipe")
