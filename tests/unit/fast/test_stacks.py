"""The stacks of all threads: the compiled function and the one in Python tell the same."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hotlap.fast import choice, reference

Stacks = Callable[[tuple[int, ...], int], dict[int, "reference.Entries | None"]]


def _compiled(whole: tuple[int, ...], depth: int) -> Any:
    if choice.hooks is None:
        pytest.skip(f"no compiled hooks: {choice.because}")
    return choice.hooks.stacks(whole, depth)


@pytest.fixture(params=[reference.stacks, _compiled], ids=["python", "compiled"])
def stacks(request: pytest.FixtureRequest) -> Stacks:
    found: Stacks = request.param
    return found


@pytest.fixture
def resting() -> Iterator[int]:
    """The ident of a thread that rests five calls deep."""
    with _at_rest(5) as ident:
        yield ident


@pytest.fixture
def deep() -> Iterator[int]:
    """The ident of a thread that rests three hundred calls deep, at which nobody has looked."""
    with _at_rest(300) as ident:
        yield ident


@contextlib.contextmanager
def _at_rest(depth: int) -> Iterator[int]:
    begun, end = threading.Event(), threading.Event()

    def dive(calls: int) -> None:
        if calls:
            return dive(calls - 1)
        begun.set()
        end.wait()
        return None

    thread = threading.Thread(target=dive, args=(depth,))
    thread.start()
    begun.wait()
    try:
        yield thread.ident or 0
    finally:
        end.set()
        thread.join()


def test_they_are_those_that_python_tells(stacks: Stacks, resting: int) -> None:
    entries = stacks((resting,), 400)[resting]
    frame: Any = sys._current_frames()[resting]
    expected = []
    while frame is not None:
        expected.append((frame.f_code, frame.f_lasti, frame.f_globals["__name__"]))
        frame = frame.f_back
    assert entries == expected
    assert [code.co_name for code, _, _ in entries].count("dive") == 6


def test_only_the_chosen_are_whole_and_none_is_deeper_than_wanted(
    stacks: Stacks, resting: int
) -> None:
    mine = threading.get_ident()
    whole = stacks((mine, resting), 400)
    assert len(whole[mine] or ()) > 5
    found = stacks((resting,), 3)
    assert {ident: len(entries or ()) for ident, entries in found.items()} == {
        ident: 3 if ident == resting else 1 for ident in whole
    }
    assert found[resting] == (whole[resting] or [])[:3]
    assert all(len(one or ()) == 1 for one in stacks((), 400).values())


def test_a_module_without_a_proper_name_has_none(stacks: Stacks) -> None:
    world: dict[str, Any] = {"stacks": stacks, "ident": threading.get_ident(), "__name__": 7}
    exec("def named():\n    return stacks((ident,), 1 << 20)[ident]\n", world)
    entries = world["named"]()
    assert [module for code, _, module in entries if code.co_name == "named"] == [None]


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_left_as_it_was(on: bool) -> None:
    before = gc.isenabled()
    try:
        gc.enable() if on else gc.disable()
        _compiled((threading.get_ident(),), 400)
        assert gc.isenabled() is on
    finally:
        gc.enable() if before else gc.disable()


def test_no_collection_begins_within(deep: int) -> None:
    _compiled((), 1)  # skips where nothing is compiled
    calls: list[str] = []
    threshold = gc.get_threshold()

    def called(phase: str, _: dict[str, int]) -> None:
        calls.append(phase)

    gc.callbacks.append(called)
    try:
        gc.set_threshold(1)
        entries = _compiled((deep,), 400)[deep]
        count = len(calls)
    finally:
        gc.callbacks.remove(called)
        gc.set_threshold(*threshold)
    assert len(entries) > 300
    assert count <= 4  # before and after it, at most: each frame is an object of its own


def test_what_it_is_given_has_to_be_a_tuple_and_a_number() -> None:
    _compiled((), 1)
    for wrong in (([1], 4), ((1,), "4"), ((1,),)):
        with pytest.raises(TypeError):
            choice.hooks.stacks(*wrong)  # type: ignore[union-attr]  # _compiled has looked
