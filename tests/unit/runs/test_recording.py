"""One process appends to its file: a broken disk costs the record, never the training."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotlap.runs.frames import Frame, decode, encode
from hotlap.runs.recording import Recording


def tags(path: Path) -> list[str]:
    return [f.tag if isinstance(f, Frame) else f for f in decode(path.read_bytes())]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "proc" / "one" / "self.rec"


def test_nothing_is_made_before_there_is_something_to_write(path: Path) -> None:
    recording = Recording(path, "process")
    assert recording.flush()
    recording.add(encode("aaaa", b""))
    assert not path.parent.exists()


def test_appends_with_one_header(path: Path) -> None:
    recording = Recording(path, "process")
    for tag in ("aaaa", "bbbb", "cccc"):
        recording.add(encode(tag, b"1"))
        assert recording.flush()
    again = Recording(path, "process")  # another process of the same worker id, an epoch later
    again.add(encode("dddd", b"1"))
    assert again.flush()
    assert tags(path) == ["head", "aaaa", "bbbb", "cccc", "dddd"]


def test_only_the_owner_may_read(path: Path) -> None:
    before = os.umask(0)
    try:
        recording = Recording(path, "process")
        recording.add(encode("aaaa", b""))
        assert recording.flush()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_no_descriptor_stays_open(path: Path) -> None:
    recording = Recording(path, "process")
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else None
    if before is None:
        pytest.skip("this system does not list a process's descriptors")
    for _ in range(5):
        recording.add(encode("aaaa", b"x" * 1000))
        recording.flush()
    assert os.listdir("/proc/self/fd") == before


def test_none_stays_open_after_a_failed_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not list a process's descriptors")
    recording = Recording(path, "process")
    before = os.listdir("/proc/self/fd")

    def refuse(_handle: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    recording.add(encode("aaaa", b""))
    assert not recording.flush()
    assert os.listdir("/proc/self/fd") == before


def test_it_follows_no_change_of_directory(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording(path, "process")
    recording.add(encode("aaaa", b""))
    recording.flush()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    recording.add(encode("bbbb", b""))
    assert recording.flush()
    assert tags(path) == ["head", "aaaa", "bbbb"]


def test_closing_every_descriptor_and_forking_lose_nothing(path: Path) -> None:
    recording = Recording(path, "process")
    recording.add(encode("aaaa", b""))
    recording.flush()
    child = os.fork()
    if not child:
        try:
            os.closerange(3, 256)
            recording.add(encode("bbbb", b""))
            recording.flush()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    recording.add(encode("cccc", b""))
    assert recording.flush()
    assert tags(path) == ["head", "aaaa", "bbbb", "cccc"]


def test_a_folder_that_cannot_be_made_ends_the_recording(tmp_path: Path) -> None:
    obstacle = tmp_path / "file"
    obstacle.write_text("")
    recording = Recording(obstacle / "proc" / "self.rec", "process")
    recording.add(encode("aaaa", b""))
    assert not recording.flush()
    assert recording.lost is not None
    assert "NotADirectoryError" in recording.lost


def test_after_a_failed_write_it_gives_up_for_good(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def refuse(_handle: int, data: bytes) -> int:
        calls.append(data)
        raise OSError(28, "No space left on device")

    recording = Recording(path, "process")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        recording.add(encode("aaaa", b""))
        assert not recording.flush()
    assert recording.lost == "OSError: [Errno 28] No space left on device"
    for _ in range(3):
        recording.add(encode("bbbb", b""))
        assert not recording.flush()
    assert len(calls) == 1
    assert path.read_bytes() == b""
    assert recording._pending == [], "what cannot be written must not fill the memory"


def test_a_short_write_leaves_a_torn_tail_and_ends_the_recording(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    recording = Recording(path, "process")
    recording.add(encode("aaaa", b"whole"))
    recording.flush()
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:-3]))
    recording.add(encode("bbbb", b"torn"))
    assert not recording.flush()
    assert "bytes could be written" in str(recording.lost)
    recording.add(encode("cccc", b""))
    assert not recording.flush()
    assert tags(path)[:2] == ["head", "aaaa"]
    assert tags(path)[2:] == ["torn tail of 17 bytes dropped"]


@pytest.fixture
def small_files() -> Iterator[int]:
    """Let no file of this process grow beyond 4096 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield 4096
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_takes_no_more_costs_only_the_record(path: Path, small_files: int) -> None:
    recording = Recording(path, "process")
    results = []
    for _ in range(20):
        recording.add(encode("aaaa", b"x" * 1000))
        results.append(recording.flush())
    assert results == [True] * 4 + [False] * 16 or results == [True] * 3 + [False] * 17
    assert recording.lost is not None
    assert path.stat().st_size <= small_files
    assert set(tags(path)[1:4]) == {"aaaa"}


def test_nothing_is_appended_beyond_the_limit(path: Path) -> None:
    recording = Recording(path, "process", limit_bytes=300)
    for _ in range(10):
        recording.add(encode("aaaa", b"x" * 84))
        recording.flush()
    assert recording.lost is not None
    assert "limit of 300 bytes" in recording.lost
    assert path.stat().st_size <= 300
    assert tags(path) == ["head", "aaaa", "aaaa"]


def test_the_slowest_write_is_known(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instants = iter((0, 5_000_000, 10_000_000, 12_000_000))
    monkeypatch.setattr("hotlap.runs.recording.perf_counter_ns", lambda: next(instants))
    recording = Recording(path, "process")
    for _ in range(2):
        recording.add(encode("aaaa", b""))
        recording.flush()
    assert recording.slowest_ns == 5_000_000
