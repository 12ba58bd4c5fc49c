"""Numbers as people read them."""

from __future__ import annotations

import pytest

from hotlap.report.units import digits, duration, many, share, size, speed


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (None, "not measured"),
        (0, "0 s"),
        (7, "7.00 ns"),
        (812, "812 ns"),
        (12_345, "12.3 µs"),
        (999_600, "1.00 ms"),
        (1_000_000, "1.00 ms"),
        (9_996_000, "10.0 ms"),
        (123_456_789, "123 ms"),
        (1_234_567_890, "1.23 s"),
        (99_400_000_000, "99.4 s"),
        (125_000_000_000, "2 min 5 s"),
        (11_520_000_000_000, "3 h 12 min"),
        (200_000_000_000_000, "2 d 7 h"),
        (-2_000_000, "-2.00 ms"),
    ],
)
def test_durations(ns: int | None, words: str) -> None:
    assert duration(ns) == words


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (None, "not measured"),
        (0.0, "0 %"),
        (0.0004, "<1 %"),
        (0.0099, "1.0 %"),
        (0.042, "4.2 %"),
        (0.0996, "10 %"),
        (0.614, "61 %"),
        (0.9996, "100 %"),
        (1.0, "100 %"),
    ],
)
def test_shares(part: float | None, words: str) -> None:
    assert share(part) == words


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (None, "not measured"),
        (0, "0 B"),
        (812, "812 B"),
        (1_000, "1.00 kB"),
        (999_700, "1.00 MB"),
        (1_380_000_000, "1.38 GB"),
        (2_000_000_000_000, "2.00 TB"),
    ],
)
def test_sizes(size_bytes: int | None, words: str) -> None:
    assert size(size_bytes) == words


def test_speeds_and_counts() -> None:
    assert speed(120_000_000) == "120 MB/s"
    assert speed(None) == "not measured"
    assert many(1, "step") == "1 step"
    assert many(1200, "step") == "1,200 steps"
    assert many(2, "batch", "batches") == "2 batches"


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (3_196.4, "3,200"), (0.012345, "0.0123"), (9.996, "10.0"), (1_000_000, "1,000,000")],
)
def test_three_digits_that_count(value: float, words: str) -> None:
    assert digits(value) == words
