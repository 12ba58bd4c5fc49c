"""Channels that carry what happens at a site to those who subscribed, and nothing to the user.

A channel has two ends: ``begin(subject)`` returns a token, ``end(token, subject)`` takes it back.
Sites call them around the user's call. With one subscriber the site calls it directly.
A token that is false says that this subscriber does not care how the call ends.
An exception in a subscriber is ours: the site reports it with ``fail`` and goes silent.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Container, Iterable
from types import FrameType
from typing import Any

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

Begin = Callable[[Any], Any]
End = Callable[[Any, Any], None]
OnFault = Callable[[str, BaseException], None]
Make = Callable[["Channel", str, Any, Any, tuple[Any, ...]], Any]


class InjectedFault(RuntimeError):
    """Raised on purpose in place of a hook, to test that the training does not notice."""


def nothing_began(subject: Any) -> Any:  # noqa: ARG001 - the signature of a channel's begin
    """Stand in for ``begin`` of a channel that is of interest at its end only."""
    return 1


def nothing_ended(token: Any, subject: Any) -> None:
    """Stand in for ``end`` of a channel that nobody needs at its end."""


class Channel:
    """The events of one place. Subscribers are called in the order of subscription.

    Until ``close`` the two ends may be read as attributes and called directly; after a fault
    they do nothing, so a hook that is still on the stack ends in peace.
    """

    __slots__ = ("_make", "_on_fault", "_subscribers", "name", "open", "silence", "unheard")

    def __init__(self, name: str, on_fault: OnFault) -> None:
        self.name = name
        self.open = True
        self.silence: Callable[[], None] | None = None
        self.unheard: tuple[Any, Container[int]] = (None, ())
        """Where nobody listens: an object, and values of its ``current`` at which a site that is
        called by the hundred may pass over us."""
        self._on_fault = on_fault
        self._subscribers: list[tuple[Begin, End]] = []
        self._make: Make | None = None

    def __bool__(self) -> bool:
        return bool(self._subscribers) and self.open

    def subscribe(self, begin: Begin = nothing_began, end: End = nothing_ended) -> None:
        """Add a subscriber; takes effect for sites that are installed afterwards."""
        self._subscribers.append((begin, end))
        self._make = None

    def offer(self, make: Make) -> None:
        """Let ``make`` provide compiled hooks for those who have subscribed by now, and no others.

        make: called with (channel, kind, original, the wrapper in Python, further arguments).
        """
        self._make = make

    def hook(self, kind: str, original: Any, wrapper: Any, *more: Any) -> Any:
        """Return what stands for ``original``: a compiled hook if one is offered, or ``wrapper``.

        more: what the site shares with its wrapper, by kind. A compiled hook does the plain case
        itself and calls the wrapper in any other; it has it as ``fallback``.
        """
        if self._make is None:
            return wrapper
        try:
            return functools.update_wrapper(
                self._make(self, kind, original, wrapper, more), original
            )
        except Exception:
            return wrapper  # costs more time, and does the same

    def ends(self) -> tuple[Begin, End]:
        """Return the two callables that a site calls: direct ones for a single subscriber.

        With several, ends are called in reverse order, and only of those that gave a token.
        """
        if not self._subscribers:
            return nothing_began, nothing_ended
        return functools.reduce(_both, self._subscribers)

    def fail(self, error: BaseException) -> None:
        """Report a fault of ours, once, and take the site out.

        What a signal handler of the user's raised while a hook ran (a time limit by ``alarm``) is
        no fault: it is noted, the site stays, and it is raised again. Nothing else is raised.
        """
        if _raised_by_signal_handler(error):
            with contextlib.suppress(Exception):
                self._on_fault(self.name, error)
            raise error
        if not self.open:
            return
        self.open = False
        try:
            if self.silence is not None:
                self.silence()
        except Exception as second:
            error = second
        try:
            self._on_fault(self.name, error)
        except Exception:
            return


class Hub:
    """All channels of one process.

    on_fault: called with (channel name, error) at our own failure.
    faults: channels whose subscribers are replaced by ones that raise ``InjectedFault``.
    disabled: channels that stay empty.
    """

    def __init__(
        self,
        on_fault: OnFault,
        faults: Iterable[str] = (),
        disabled: Iterable[str] = (),
    ) -> None:
        self._on_fault = on_fault
        self._faults = frozenset(faults)
        self._disabled = frozenset(disabled)
        self._channels: dict[str, Channel] = {}

    def channel(self, name: str) -> Channel:
        """Return the channel of that name, the same one each time."""
        if name not in self._channels:
            self._channels[name] = Channel(name, self._on_fault)
        return self._channels[name]

    def offer(self, name: str, make: Make) -> None:
        """Offer compiled hooks for a channel, unless it is empty or to fail on purpose."""
        if self.channel(name) and not {name, f"{name}.begin", f"{name}.end"} & self._faults:
            self.channel(name).offer(make)

    def subscribe(self, name: str, begin: Begin = nothing_began, end: End = nothing_ended) -> None:
        """Subscribe to a channel by name; a disabled one stays empty."""
        if name in self._disabled:
            return
        if f"{name}.begin" in self._faults or name in self._faults:
            begin = _raises(f"{name}.begin")
        if f"{name}.end" in self._faults:
            end = _raises(f"{name}.end")
        self.channel(name).subscribe(begin, end)


def _both(outer: tuple[Begin, End], inner: tuple[Begin, End]) -> tuple[Begin, End]:
    outer_begin, outer_end = outer
    inner_begin, inner_end = inner

    def begin(subject: Any) -> Any:
        first, second = outer_begin(subject), inner_begin(subject)
        return (first, second) if first or second else 0

    def end(token: Any, subject: Any) -> None:
        if not token:
            return
        first, second = token
        if second:
            inner_end(second, subject)
        if first:
            outer_end(first, subject)

    return begin, end


def _raised_by_signal_handler(error: BaseException) -> bool:
    """Tell whether an exception has come through a handler of a signal, whatever kind it is of.

    A handler is called with the frame that it interrupts, which is also the one it returns to.
    """
    place = error.__traceback__
    while place is not None:
        if _handles_a_signal(place.tb_frame):
            return True
        place = place.tb_next
    return False


def _handles_a_signal(frame: FrameType) -> bool:
    code = frame.f_code
    if frame.f_back is None or code.co_filename.startswith(_OWN):
        return False
    starred = bool(code.co_flags & inspect.CO_VARARGS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + starred]
    for given in (frame.f_locals.get(name) for name in names):
        if any(one is frame.f_back for one in (given if type(given) is tuple else (given,))):
            return True
    return False


def _raises(name: str) -> Callable[..., Any]:
    def raise_on_purpose(*_: Any) -> Any:
        raise InjectedFault(name)

    return raise_on_purpose
