"""Samples from storage and from memory, and what they say of the rate of fetching."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotlap.experiment.cold_and_warm import cross_checked, storage
from hotlap.values.facts import Measured, Missing, Storage
from hotlap.values.trial import WindowResult

MS = 1_000_000
SPLIT = {
    "samples": 10,
    "files": 12,
    "file_bytes": 1 << 20,
    "cold_wall_ns": 100 * MS,
    "cold_blocked_ns": 80 * MS,
    "cold_read_bytes": 1 << 20,
    "warm_wall_ns": 30 * MS,
    "warm_blocked_ns": 5 * MS,
    "warm_read_bytes": 0,
}


def window(**fields: Any) -> WindowResult:
    """Return a window over ten samples; fields replace its own."""
    plain = WindowResult("storage", 0, 0, 1, 0, 0, 10, (), split=SPLIT, ended_by="steps")
    return replace(plain, **fields)


def compared(**fields: Any) -> Measured[Storage]:
    """Return what such a window says."""
    found = storage([window(**fields)])
    assert isinstance(found, Measured)
    return found


def test_a_window_is_read_with_its_notes() -> None:
    found = compared(notes=("3% of the files stayed in memory",))
    expected = Storage(10, 12, 1 << 20, 100 * MS, 30 * MS, 80 * MS, 5 * MS, 1 << 20)
    assert found.value == expected
    assert found.origin.endswith("3% of the files stayed in memory")


def test_bytes_that_the_kernel_does_not_tell_are_not_none_read() -> None:
    assert compared(split={**SPLIT, "cold_read_bytes": None}).value.read_bytes is None


def test_why_there_is_none() -> None:
    other = window(kind="drain")
    failed = window(ended_by="failed: the data is a stream", split={})
    assert storage([other, failed]) == Missing("the data is a stream")
    assert isinstance(storage([other]), Missing)


def test_warm_files_are_no_proof_that_storage_is_quick() -> None:
    found = cross_checked(Missing("the workers were not blocked"), compared())
    assert isinstance(found, Missing)
    assert "125 samples per second of waiting" in found.because  # 10 in 80 ms


def test_storage_that_is_quick_leaves_the_reason_as_it_was() -> None:
    quick = compared(split={**SPLIT, "cold_blocked_ns": 5 * MS})
    assert cross_checked(Missing("as it was"), quick) == Missing("as it was")
    assert cross_checked(Missing("as it was"), Missing("none")) == Missing("as it was")


def test_a_rate_of_fetching_says_what_was_cold_and_what_warm() -> None:
    found = cross_checked(Measured(500.0, "drain"), compared())
    assert isinstance(found, Measured)
    assert found.value == 500.0
    assert "8.00 ms a sample from storage, 0.50 ms from memory" in found.origin
