"""Which signals we take while the command runs, and how they are taken.

They are blocked and fetched, not handled: nothing interrupts us, nothing is lost before the child
is up, and the dispositions that the child inherits stay untouched.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Set
from types import TracebackType
from typing import Final

_FAULTS: Final = frozenset(
    getattr(signal, name)
    for name in "SIGSEGV SIGBUS SIGFPE SIGILL SIGTRAP SIGSYS SIGABRT".split()
    if hasattr(signal, name)
)
"""Raised by a fault of the process itself; blocked they would still end it."""

_OWN: Final = frozenset((signal.SIGPIPE, signal.SIGXFSZ, signal.SIGXCPU))
"""Answers to what we do ourselves (a closed output, a limit), never a message to the command."""

_UNCATCHABLE: Final = frozenset((signal.SIGKILL, signal.SIGSTOP))

TAKEN: Final[frozenset[signal.Signals | int]] = (
    frozenset(signal.valid_signals()) - _FAULTS - _OWN - _UNCATCHABLE
)
"""The signals that are blocked while we wait, SIGCHLD among them."""

STOPS: Final = frozenset((signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU))
"""Signals by which a terminal, or a shell with job control, stops a job."""

FROM_TERMINAL: Final = STOPS | {signal.SIGINT, signal.SIGQUIT, signal.SIGCONT, signal.SIGWINCH}
"""Signals that nearly always come to the whole group; assumed so when nobody can tell."""

_TICK_S: Final = 0.02


class Blocked:
    """A context in which the signals of ``TAKEN`` are blocked in this thread.

    before: the mask that we came with, and that the child is to get back.
    """

    def __init__(self) -> None:
        self.before: set[signal.Signals | int] = set()

    def __enter__(self) -> Blocked:
        self.before = set(signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        take_all()  # it was meant for the command, which has ended
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


def take(timeout_s: float) -> int | None:
    """Return the next blocked signal, waiting at most ``timeout_s`` seconds; None if none came.

    A blocked signal is kept by Linux even when it is ignored (nohup), so it is passed on too, and
    the child's own disposition decides.
    """
    if hasattr(signal, "sigtimedwait"):
        info = signal.sigtimedwait(TAKEN, max(0.0, timeout_s))
        return None if info is None else info.si_signo
    return _take_by_polling(timeout_s)


def pending() -> set[int]:
    """Return the signals of ``TAKEN`` that wait for us, without taking them."""
    return {int(number) for number in signal.sigpending() & TAKEN}


def take_all() -> list[int]:
    """Take what waits for us, in the order of delivery, without waiting for more."""
    taken: list[int] = []
    while pending():
        number = take(0.0)
        if number is not None:
            taken.append(number)
    return taken


def settle() -> None:
    """Give a sender that walks over processes one by one the time to be done.

    About 20 ms; less when a child ends meanwhile, which needs no more thought.
    """
    if hasattr(signal, "sigtimedwait"):
        signal.sigtimedwait({signal.SIGCHLD}, _TICK_S)
    else:
        time.sleep(_TICK_S)


def undone_by(numbers: Set[int]) -> Set[int]:
    """Return the signals whose trace these may have wiped out: a stop signal takes a waiting
    SIGCONT away, and SIGCONT the waiting stop signals, in every process that it comes to."""
    undone: set[int] = set()
    if signal.SIGCONT in numbers:
        undone |= STOPS
    if STOPS & numbers:
        undone.add(signal.SIGCONT)
    return undone


def _take_by_polling(timeout_s: float) -> int | None:
    """``take`` for systems without ``sigtimedwait`` (macOS): up to 20 ms late."""
    until = time.monotonic() + timeout_s
    while not (waiting := pending()):
        left = until - time.monotonic()
        if left <= 0:
            return None
        # A child's end may leave no pending signal there, so the caller looks itself each tick.
        time.sleep(min(_TICK_S, left))
        if timeout_s > _TICK_S:
            return None
    return int(signal.sigwait(waiting))
