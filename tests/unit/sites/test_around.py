"""The wrapper of most sites: results, exceptions and tracebacks are as without it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotlap.sites.around import around, first, nothing
from hotlap.sites.hub import Hub
from unit.pythons import PYTHONS, python_or_skip


class Told:
    """A channel with a subscriber that keeps what it hears, and fails when it is told to."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.failed: list[BaseException] = []
        self.begin_raises: BaseException | None = None
        self.end_raises: BaseException | None = None
        hub = Hub(lambda _, error: self.failed.append(error))
        hub.subscribe("one", self.begin, self.end)
        self.channel = hub.channel("one")

    def begin(self, subject: Any) -> int:
        self.heard.append(("begin", subject))
        if self.begin_raises is not None:
            raise self.begin_raises
        return len(self.heard)

    def end(self, token: Any, subject: Any) -> None:
        self.heard.append(("end", token, subject))
        if self.end_raises is not None:
            raise self.end_raises


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.mark.parametrize("version", [None, *(one for one in PYTHONS if one >= (3, 10))])
def test_exceptions_look_as_without_us_under_every_python(
    version: tuple[int, ...] | None, checkout: Path
) -> None:
    python = sys.executable if version is None else python_or_skip(version)
    done = subprocess.run(
        [python, str(Path(__file__).with_name("around_cases.py"))],
        env={**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "compared 378\n"


def test_results_arguments_and_the_subject(told: Told) -> None:
    wrapped = around(lambda *args, **kwargs: (args, kwargs), told.channel, lambda args: args[1])
    assert wrapped(1, 2, x=3) == ((1, 2), {"x": 3})
    assert told.heard == [("begin", 2), ("end", 1, 2)]
    assert around(lambda: 5, told.channel, first)() == 5
    assert told.heard[2:] == [("begin", None), ("end", 3, None)]
    assert around(lambda _: 5, told.channel, nothing)("x") == 5
    assert told.heard[4:] == [("begin", None), ("end", 5, None)]


def test_the_wrapper_looks_like_what_it_wraps(told: Told) -> None:
    def original(a: int, *, b: str = "x") -> None:
        """Say something."""
        del a, b

    wrapped = around(original, told.channel, first)
    assert (wrapped.__name__, wrapped.__doc__) == ("original", "Say something.")
    assert inspect.signature(wrapped) == inspect.signature(original)


def test_calls_inside_calls_are_told_in_order(told: Told) -> None:
    def nested(n: int) -> int:
        return n if n == 0 else int(wrapped(n - 1))

    wrapped = around(nested, told.channel, first)
    assert wrapped(2) == 0
    assert told.heard == [
        ("begin", 2),
        ("begin", 1),
        ("begin", 0),
        ("end", 3, 0),
        ("end", 2, 1),
        ("end", 1, 2),
    ]


@pytest.mark.parametrize("where", ["begin_raises", "end_raises"])
def test_our_failure_is_told_once_and_the_call_goes_on(told: Told, where: str) -> None:
    error = ValueError("ours")
    setattr(told, where, error)
    calls = []

    def original() -> str:
        calls.append(1)
        return "result"

    wrapped = around(original, told.channel, nothing)
    assert [wrapped() for _ in range(3)] == ["result"] * 3
    assert calls == [1, 1, 1]
    assert told.failed == [error]
    assert len(told.heard) == (1 if where == "begin_raises" else 2), "silent from then on"


def test_a_failure_deep_inside_lets_outer_calls_end_in_peace(told: Told) -> None:
    def nested(n: int) -> int:
        if n == 1:
            told.begin_raises = ValueError("ours")
        return n if n == 0 else int(wrapped(n - 1))

    wrapped = around(nested, told.channel, first)
    assert wrapped(3) == 0
    assert len(told.failed) == 1


@pytest.mark.parametrize("where", ["begin_raises", "end_raises"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_that_lands_in_our_hook_reaches_the_user(
    told: Told, where: str, kind: type[BaseException]
) -> None:
    """Ctrl-C is the user's, wherever it strikes."""
    setattr(told, where, kind())
    wrapped = around(lambda: 1, told.channel, nothing)
    with pytest.raises(kind):
        wrapped()
    assert told.failed == []
    assert told.channel.open


def test_where_the_stack_runs_out_in_our_hook_the_user_sees_his_own_error(told: Told) -> None:
    def endless(n: int) -> int:
        return int(wrapped(n + 1))

    wrapped = around(endless, told.channel, first)
    with pytest.raises(RecursionError):
        wrapped(0)
    told.channel.open = True
    assert around(lambda: 1, told.channel, nothing)() == 1


def test_our_failure_is_no_context_of_the_users_exception(told: Told) -> None:
    def original() -> None:
        raise KeyError("theirs")

    told.begin_raises = ValueError("ours")
    told.end_raises = ValueError("ours")
    wrapped = around(original, told.channel, nothing)
    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            wrapped()
        assert caught.value.__context__ is None
        told.channel.open = True
        told.begin_raises = None
