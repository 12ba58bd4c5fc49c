"""Files in the page cache: seen, let go of, and read again unharmed."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from pathlib import Path

import pytest

from hotlap.inject.conditions import page_cache

MIB = 1 << 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="by Linux's own calls")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of 2 MiB that has been read; skips where files stay in memory."""
    path = tmp_path / "data.bin"
    with path.open("wb") as out:
        out.write(os.urandom(2 * MIB))
        out.flush()
        os.fsync(out.fileno())
    page_cache.let_go([str(path)])
    if page_cache.resident_bytes(str(path)) != 0:
        pytest.skip("files in the temporary folder stay in memory")
    path.read_bytes()
    return path


def test_what_was_read_is_there_and_can_be_let_go_of(file: Path) -> None:
    before = file.read_bytes()
    assert page_cache.resident_bytes(str(file)) == 2 * MIB
    page_cache.let_go([str(file)])
    assert page_cache.resident_bytes(str(file)) == 0
    assert file.read_bytes() == before


def test_what_is_not_written_yet_is_written_before(file: Path) -> None:
    fresh = file.with_name("fresh.bin")
    content = os.urandom(MIB)
    fresh.write_bytes(content)
    page_cache.let_go([str(fresh)])
    assert page_cache.resident_bytes(str(fresh)) == 0
    assert fresh.read_bytes() == content


def test_what_is_mapped_to_read_goes_too_and_comes_back(file: Path) -> None:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        before = bytes(data)
        assert str(file) in page_cache.held_files()
        page_cache.let_go([str(file)])
        assert page_cache.resident_bytes(str(file)) == 0
        assert bytes(data) == before


def test_a_private_copy_keeps_what_was_written_to_it(file: Path) -> None:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY) as data:
        data[:5] = b"mine!"
        page_cache.let_go([str(file)])
        assert data[:5] == b"mine!"


def test_a_private_copy_keeps_it_also_when_it_is_protected(file: Path) -> None:
    libc = ctypes.CDLL(None)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY) as data:
        data[:5] = b"mine!"
        held = ctypes.c_char.from_buffer(data)
        at = ctypes.c_void_p(ctypes.addressof(held))
        assert libc.mprotect(at, ctypes.c_size_t(len(data)), mmap.PROT_READ) == 0
        page_cache.let_go([str(file)])
        assert data[:5] == b"mine!"
        del held


def test_only_files_opened_to_read_are_noted(file: Path) -> None:
    opened = page_cache.Opened()
    with opened.noting() as paths:
        file.read_bytes()
        (file.parent / "other").write_bytes(b"x")
        os.close(os.open(file.parent / "other", os.O_RDWR))
    file.with_name("late").touch()
    file.with_name("late").read_bytes()
    assert paths == {str(file)}


def test_data_is_told_from_system_and_folders(file: Path) -> None:
    empty = file.with_name("empty")
    empty.touch()
    mixed = {str(file), str(file.parent), str(empty), "/proc/self/maps", os.__file__, "/gone"}
    assert page_cache.data_files(mixed) == {str(file): 2 * MIB}
