"""Channels: who hears of what, in which order, and what happens when a listener fails."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from hotlap.sites.around import around, nothing
from hotlap.sites.hub import Channel, Hub, InjectedFault


class Told:
    """Keeps what subscribers heard and what failed."""

    def __init__(self, faults: tuple[str, ...] = (), disabled: tuple[str, ...] = ()) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.failed: list[tuple[str, BaseException]] = []
        self.hub = Hub(lambda name, error: self.failed.append((name, error)), faults, disabled)

    def subscribe(self, name: str, who: str) -> None:
        """Add a subscriber that writes down what it hears."""

        def begin(subject: Any) -> str:
            self.heard.append((who, "begin", subject))
            return f"token of {who}"

        def end(token: Any, subject: Any) -> None:
            self.heard.append((who, "end", token, subject))

        self.hub.subscribe(name, begin, end)


def test_one_subscriber_is_called_directly() -> None:
    told = Told()
    told.hub.subscribe("save", int, print)
    assert told.hub.channel("save").ends() == (int, print)


def test_several_are_called_in_order_and_ended_in_reverse_each_with_its_token() -> None:
    told = Told()
    for who in "abc":
        told.subscribe("save", who)
    begin, end = told.hub.channel("save").ends()
    end(begin(7), 7)
    assert told.heard == [
        ("a", "begin", 7),
        ("b", "begin", 7),
        ("c", "begin", 7),
        ("c", "end", "token of c", 7),
        ("b", "end", "token of b", 7),
        ("a", "end", "token of a", 7),
    ]


def test_a_channel_is_the_same_each_time_and_empty_until_somebody_subscribes() -> None:
    told = Told()
    channel = told.hub.channel("save")
    assert told.hub.channel("save") is channel
    assert not channel
    told.subscribe("save", "a")
    assert channel


def test_a_disabled_channel_stays_empty() -> None:
    told = Told(disabled=("save",))
    told.subscribe("save", "a")
    told.subscribe("batch", "a")
    assert not told.hub.channel("save")
    assert told.hub.channel("batch")


@pytest.mark.parametrize("fault", ["save", "save.begin"])
def test_an_injected_fault_takes_the_place_of_begin(fault: str) -> None:
    told = Told(faults=(fault,))
    told.subscribe("save", "a")
    begin, end = told.hub.channel("save").ends()
    with pytest.raises(InjectedFault, match=r"save\.begin"):
        begin(1)
    end(0, 1)
    assert told.heard == [("a", "end", 0, 1)]


def test_an_injected_fault_at_the_end() -> None:
    told = Told(faults=("save.end",))
    told.subscribe("save", "a")
    begin, end = told.hub.channel("save").ends()
    token = begin(1)
    with pytest.raises(InjectedFault, match=r"save\.end"):
        end(token, 1)


def test_a_failure_is_told_once_and_closes_the_channel() -> None:
    told = Told()
    told.subscribe("save", "a")
    channel = told.hub.channel("save")
    silenced = []
    channel.silence = lambda: silenced.append(1)
    error = ValueError("ours")
    channel.fail(error)
    channel.fail(ValueError("again"))
    assert told.failed == [("save", error)]
    assert silenced == [1]
    assert not channel.open
    assert not channel


def test_failing_to_take_the_site_out_is_told_and_never_raises() -> None:
    told = Told()
    channel = told.hub.channel("save")
    second = RuntimeError("cannot be undone")

    def refuse() -> None:
        raise second

    channel.silence = refuse
    channel.fail(ValueError("ours"))
    assert told.failed == [("save", second)]


def test_a_listener_for_faults_that_fails_itself_is_borne() -> None:
    def refuse(name: str, error: BaseException) -> None:
        raise RuntimeError(name) from error

    channel = Channel("save", refuse)
    channel.fail(ValueError("ours"))
    assert not channel.open


class TimeIsUp(Exception):
    """Raised by handlers of the script's."""


def _plainly(*_: object) -> None:
    raise TimeIsUp


def _by_name(signum: int, frame: object = None) -> None:
    raise TimeIsUp((signum, frame))


class _Limit:
    def __call__(self, signum: int, frame: object) -> None:
        raise TimeIsUp((signum, frame))

    def as_method(self, signum: int, frame: object) -> None:
        raise TimeIsUp((signum, frame))


def _once(signum: int, _frame: object) -> None:
    signal.signal(signum, signal.SIG_DFL)
    raise TimeIsUp


class _Decorated:
    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def __call__(self, *given: object) -> None:
        self.function(*given)


HANDLERS: dict[str, Callable[[int, FrameType | None], None]] = {
    "function": _plainly,
    "named": _by_name,
    "object": _Limit(),
    "method": _Limit().as_method,
    "partial": functools.partial(_by_name),
    "once": _once,
    "decorated": _Decorated(_plainly),
}


@pytest.mark.parametrize("kind", HANDLERS)
def test_what_a_signal_handler_raises_in_a_hook_reaches_the_user(kind: str) -> None:
    handler = HANDLERS[kind]
    told: list[tuple[str, BaseException]] = []
    hub = Hub(lambda name, error: told.append((name, error)))
    hub.subscribe("save", lambda _: signal.raise_signal(signal.SIGUSR1))
    channel = hub.channel("save")
    call = around(lambda: "done", channel, nothing)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeIsUp):
            call()
        assert [name for name, _ in told] == ["save"]
        assert channel.open
    finally:
        signal.signal(signal.SIGUSR1, before)
