"""Collapsed stacks of py-spy, read line by line of the user's."""

from __future__ import annotations

import pytest

from hotlap.experiment.native_stacks import native_entries
from hotlap.values.record import Place

LINE = Place("train.py", 52, "__getitem__")
PLACES = {("/home/a/train.py", 52): LINE}
USER = 'process 7:"python train.py";<module> (/home/a/train.py:9);__getitem__ (/home/a/train.py:52)'
PILLOW = "load (/env/site-packages/PIL/Image.py:9)"
JPEG = "/env/pillow.libs/libjpeg-6dc8d115.so.62.4.0"


def told(*stacks: str) -> list[tuple[str | None, str | None, float]]:
    """Return function, library and share of what is read from stacks."""
    return [(one.function, one.library, one.share) for one in native_entries(stacks, PLACES)]


def test_the_innermost_function_with_a_name_stands_for_a_stack() -> None:
    stack = f"{USER};{PILLOW};_decode (/src/decode.c:136);jpeg_read ({JPEG});0x7f8b ({JPEG}) 30"
    assert told(stack) == [("jpeg_read", "libjpeg", 1.0)]


def test_a_library_without_names_is_named_itself() -> None:
    assert told(f"{USER};{PILLOW};0x7f8b ({JPEG});0x7f8c (?) 30") == [(None, "libjpeg", 1.0)]


def test_who_waits_or_copies_for_others_is_not_what_runs() -> None:
    torch = "/env/torch/lib/libtorch_cpu.so"
    gomp = "/env/torch/lib/libgomp.so.1"
    stack = f"{USER};at::sort<float, 2<int>> ({torch});0x1 ({gomp});memcpy (/lib/libc.so.6) 30"
    assert told(stack) == [("at::sort", "libtorch_cpu", 1.0)]


def test_python_alone_has_no_native_function() -> None:
    assert told(f"{USER};{PILLOW} 30", f"{USER};f (/home/a/other.py:3) 5") == []


def test_shares_are_of_the_line_with_what_is_python_in_it() -> None:
    stacks = (f"{USER};jpeg_read ({JPEG}) 30", f"{USER} 10", "<module> (/home/a/train.py:9) 99")
    assert told(*stacks) == [("jpeg_read", "libjpeg", 0.75)]


@pytest.mark.parametrize("stack", ["", "nonsense", f"{USER};jpeg_read ({JPEG}) 19", ";;( 30"])
def test_too_little_says_nothing(stack: str) -> None:
    assert told(stack) == []
