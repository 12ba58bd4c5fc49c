"""The directory of all runs: made, found, listed, pruned, also when somebody else is at it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hotlap.errors import NotMeasurable, UnreadableRun, WrongUse
from hotlap.runs import store as place
from hotlap.runs.store import Store, make_run, open_store, read_manifest, write_manifest

ENDED = {"format": 1, "exit_ns": 5, "exit_code": 0}
NOBODY = 2**22 + 1
"""A process id beyond what Linux gives out."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path)


def add(store: Store, name: str, size: int = 0, **manifest: Any) -> Path:
    """Put a run into the store."""
    run = store.runs / name
    run.mkdir(parents=True)
    (run / "data").write_bytes(b"x" * size)
    write_manifest(run, {**ENDED, "id": name, "host": socket.gethostname(), **manifest})
    return run


# -- where it lies --------------------------------------------------------------------------------


def test_it_lies_in_the_start_directory_and_keeps_out_of_git(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert store.folder == tmp_path / ".hotlap"
    assert (store.folder / ".gitignore").read_text() == "*\n"
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_a_gitignore_that_the_user_changed_stays(tmp_path: Path) -> None:
    folder = open_store(tmp_path).folder
    (folder / ".gitignore").write_text("runs\n")
    open_store(tmp_path)
    assert (folder / ".gitignore").read_text() == "runs\n"


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A start directory in which nothing can be made, for the superuser too."""
    start = tmp_path / "start"
    start.mkdir()
    (start / ".hotlap").write_text("a file where the folder should be")
    return start


def test_it_falls_back_to_the_state_directory(
    unwritable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = open_store(unwritable)
    assert store.folder == tmp_path / "state" / "hotlap"
    assert store.new().is_dir()


def test_without_a_state_directory_it_falls_back_to_the_home(
    unwritable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert open_store(unwritable).folder == tmp_path / "home" / ".local" / "state" / "hotlap"


def test_with_no_place_at_all_it_says_what_was_tried(
    unwritable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(unwritable / ".hotlap"))
    with pytest.raises(NotMeasurable, match=r"start/\.hotlap.*; .*\.hotlap/hotlap"):
        open_store(unwritable)


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_user_without_a_home_needs_none_where_the_start_directory_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert open_store(tmp_path).folder == tmp_path / ".hotlap"


def test_a_user_without_a_home_is_told_when_one_is_needed(
    unwritable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(NotMeasurable, match="home directory"):
        open_store(unwritable)


# -- new ------------------------------------------------------------------------------------------


def test_names_tell_when_and_sort_by_it(store: Store) -> None:
    runs = [store.new() for _ in range(20)]
    names = [run.name for run in runs]
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", name) for name in names)
    assert names == sorted(names), "the latest run must be the last, also within one second"
    assert store.find(None) == runs[-1]
    assert {stat.S_IMODE(run.stat().st_mode) for run in runs} == {0o700}


def test_many_at_the_same_instant_all_get_a_directory(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    made: list[Path] = []
    errors: list[BaseException] = []

    def make() -> None:
        try:
            made.extend(store.new() for _ in range(20))
        except NotMeasurable as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(set(made)) == 160


def test_a_path_of_the_users_choice(tmp_path: Path) -> None:
    wanted = tmp_path / "deep" / "er"
    assert make_run(wanted) == wanted
    assert wanted.is_dir()
    assert make_run(wanted) == wanted, "an empty folder is free"
    (wanted / "file").write_text("")
    with pytest.raises(WrongUse, match="exists already"):
        make_run(wanted)
    with pytest.raises(WrongUse, match="exists already"):
        make_run(wanted / "file")


def test_a_path_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotMeasurable, match="cannot make the run directory"):
        make_run(tmp_path / "file" / "run")


# -- find -----------------------------------------------------------------------------------------


def test_runs_are_found_by_id_by_part_of_it_and_by_path(store: Store, tmp_path: Path) -> None:
    first = add(store, "20260101-000000-aaaa")
    second = add(store, "20260102-000000-bbbb")
    assert store.find(None) == second
    assert store.find("20260101-000000-aaaa") == first
    assert store.find("20260101") == first
    assert store.find("bbbb") == second
    assert store.find(str(first)) == first
    outside = tmp_path / "mine"
    make_run(outside)
    write_manifest(outside, ENDED)
    assert store.find(str(outside)) == outside


def test_what_names_several_or_none_is_refused(store: Store) -> None:
    with pytest.raises(UnreadableRun, match="no runs in"):
        store.find(None)
    add(store, "20260101-000000-aaaa")
    add(store, "20260101-000001-bbbb")
    with pytest.raises(UnreadableRun, match=r"names 2 runs \(.*aaaa, .*bbbb\)"):
        store.find("20260101")
    with pytest.raises(UnreadableRun, match="no run 'nope'"):
        store.find("nope")


def test_a_whole_id_beats_one_that_it_begins(store: Store) -> None:
    short = add(store, "20260101-000000-aa")
    add(store, "20260101-000000-aabb")
    assert store.find("20260101-000000-aa") == short


def test_a_stray_file_among_the_runs_is_no_run(store: Store) -> None:
    add(store, "20260101-000000-aaaa")
    (store.runs / "zzz").write_text("")
    assert [run.id for run in store.all()] == ["20260101-000000-aaaa"]


# -- list -----------------------------------------------------------------------------------------

HOSTILE = [
    "",
    "{",
    "[]",
    "null",
    '{"format": "1"}',
    '{"format": 2}',
    '{"format": 1, "command": 5}',
    '{"format": 1, "command": null}',
    '{"format": 1, "command": {"a": 1}, "exit_code": "x", "steps": [], "started": 7}',
    '{"format": 1, "exit_ns": "x", "launcher_pid": "x", "host": 5}',
    "[" * 100_000,
    "\x00\x01",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_damaged_manifest_is_listed_and_pruned_like_others(store: Store, text: str) -> None:
    add(store, "20260101-000000-aaaa")
    bad = add(store, "20260102-000000-bbbb", size=100)
    (bad / "run.json").write_text(text)
    old = time.time() - 86400
    os.utime(bad, (old, old))
    add(store, "20260103-000000-cccc")
    listed = store.all()
    assert [run.id[-4:] for run in listed] == ["aaaa", "bbbb", "cccc"]
    assert listed[1].size_bytes >= 100
    assert all(isinstance(word, str) for word in listed[1].command)
    assert listed[1].exit_code is None
    assert listed[1].steps is None
    assert isinstance(listed[1].started, str)
    store.prune(keep_runs=1)


def test_a_manifest_in_another_encoding_is_damaged(store: Store) -> None:
    run = add(store, "20260101-000000-aaaa")
    (run / "run.json").write_bytes(b"\xff\xfe{\x00")
    with pytest.raises(UnreadableRun, match="cannot be read"):
        read_manifest(run)


def test_a_newer_manifest_is_refused_in_words(store: Store) -> None:
    run = add(store, "20260101-000000-aaaa", format=2)
    with pytest.raises(UnreadableRun, match=r"format 2, this hotlap reads format 1: update"):
        read_manifest(run)


def test_a_folder_without_manifest_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRun, match=r"holds no run\.json"):
        read_manifest(tmp_path)


def test_a_run_that_vanishes_while_it_is_listed_is_no_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = add(store, "20260101-000000-aaaa", size=10)
    plain = read_manifest

    def vanish(folder: Path) -> dict[str, Any]:
        manifest = plain(folder)
        shutil.rmtree(folder)
        return manifest

    monkeypatch.setattr(place, "read_manifest", vanish)
    (listed,) = store.all()
    assert (listed.path, listed.size_bytes) == (run, 0)


def test_a_link_to_nowhere_in_a_run_is_no_error(store: Store) -> None:
    run = add(store, "20260101-000000-aaaa", size=10)
    (run / "broken").symlink_to(run / "missing")
    assert store.all()[0].size_bytes >= 10


# -- prune ----------------------------------------------------------------------------------------


def names(store: Store) -> list[str]:
    return [run.id[-4:] for run in store.all()]


def test_prune_removes_the_oldest_beyond_the_number(store: Store) -> None:
    for index in range(6):
        add(store, f"20260101-00000{index}-000{index}")
    removed = store.prune(keep_runs=2, dry_run=True)
    assert [run.id[-4:] for run in removed] == ["0000", "0001", "0002", "0003"]
    assert len(names(store)) == 6
    assert store.prune(keep_runs=2) == removed
    assert names(store) == ["0004", "0005"]
    assert store.prune(keep_runs=2) == []


def test_prune_removes_the_oldest_beyond_the_size(store: Store) -> None:
    for index in range(4):
        add(store, f"20260101-00000{index}-000{index}", size=1000)
    store.prune(keep_bytes=3000)
    assert names(store) == ["0002", "0003"]


def test_prune_keeps_the_newest_whatever_its_size(store: Store) -> None:
    add(store, "20260101-000000-aaaa", size=1000)
    add(store, "20260101-000001-bbbb", size=1000)
    store.prune(keep_runs=0, keep_bytes=0)
    assert names(store) == ["bbbb"]


def test_prune_keeps_what_still_runs(store: Store) -> None:
    add(store, "20260101-000000-live", exit_ns=None, launcher_pid=os.getpid())
    add(store, "20260101-000001-dead", exit_ns=None, launcher_pid=NOBODY)
    add(store, "20260101-000002-last")
    store.prune(keep_runs=1)
    assert names(store) == ["live", "last"]


def test_prune_keeps_a_run_of_another_machine_that_was_written_to_lately(store: Store) -> None:
    """On a shared disk the launcher's process is not to be seen from here."""
    other: dict[str, Any] = {"exit_ns": None, "launcher_pid": NOBODY, "host": "another-machine"}
    add(store, "20260101-000000-live", **other)
    lost = add(store, "20260101-000001-lost", **other)
    old = time.time() - 10 * 86400
    for path in (*lost.iterdir(), lost):
        os.utime(path, (old, old))
    add(store, "20260101-000002-last")
    store.prune(keep_runs=1)
    assert names(store) == ["live", "last"]


def test_prune_keeps_a_run_that_is_just_being_made(store: Store) -> None:
    """Its directory is there a moment before its manifest."""
    young = store.new()
    old = store.runs / "00000000-000000-aaaa"
    old.mkdir()
    past = time.time() - 86400
    os.utime(old, (past, past))
    add(store, "99990101-000000-last")
    store.prune(keep_runs=1)
    assert sorted(path.name for path in store.runs.iterdir()) == [
        young.name,
        "99990101-000000-last",
    ]


# -- manifest -------------------------------------------------------------------------------------


def test_a_manifest_is_written_whole_or_not_at_all(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = add(store, "20260101-000000-aaaa")
    before = (run / "run.json").read_bytes()

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        write_manifest(run, {**ENDED, "command": ["x"]})
    assert (run / "run.json").read_bytes() == before
    assert sorted(path.name for path in run.iterdir()) == ["data", "run.json"]


def test_a_manifest_comes_back(store: Store) -> None:
    run = store.new()
    manifest = {"format": 1, "command": ["python", "Übung.py", "\udcff"], "exit_ns": None}
    write_manifest(run, manifest)
    assert read_manifest(run) == manifest
    assert json.loads((run / "run.json").read_text("ascii")) == manifest
