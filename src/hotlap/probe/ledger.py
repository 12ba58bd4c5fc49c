"""Exclusive time accounts of one thread.

At any instant exactly one account is open, so their sum is the wall time, without gap or overlap.
Entering a span switches the account, leaving it switches back: a span inside another one is
taken out of it.
"""

from __future__ import annotations

from _thread import get_ident
from time import perf_counter_ns
from typing import Final

from hotlap.values.phase import ACCOUNTS

(
    DATA_WAIT,
    TRANSFER,
    FORWARD,
    BACKWARD,
    OPTIMIZER,
    COMMUNICATION,
    LOGGING,
    OTHER,
    EVALUATION,
    CHECKPOINT,
    EPOCH_EDGE,
    COMPILE,
) = range(len(ACCOUNTS))
WIDTH: Final = len(ACCOUNTS)


class Ledger:
    """The accounts of the training thread. Cost: 0.3 us to enter, 0.3 us to leave.

    In a step that has evicted our code from the processor's caches each call costs 1-2 us more.
    So the watchers of what every step does write ``enter`` and ``leave`` out, where nothing
    but the plain case is at hand; they are marked "written out".
    ``accounts`` holds nanoseconds per account and may be swapped for another list by the
    timeline; ``thread`` is the only one whose events count.
    """

    __slots__ = ("accounts", "current", "mark", "stack", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.accounts = [0] * WIDTH
        self.current = OTHER
        self.mark = perf_counter_ns()
        self.stack: list[int] = []

    def mine(self) -> bool:
        """Tell whether the calling thread is the one that is accounted."""
        return self.thread == get_ident()

    def enter(self, account: int) -> int:
        """Open ``account`` until ``leave`` is called with the token returned (never 0)."""
        now = perf_counter_ns()
        self.accounts[self.current] += now - self.mark
        self.mark = now
        stack = self.stack
        stack.append(self.current)
        self.current = account
        return len(stack)

    def leave(self, token: int) -> None:
        """Return to the account that was open before; spans left open inside are closed too."""
        stack = self.stack
        if not token or len(stack) < token:
            return
        now = perf_counter_ns()
        self.accounts[self.current] += now - self.mark
        self.mark = now
        if len(stack) == token:
            self.current = stack.pop()
        else:
            self.current = stack[token - 1]
            del stack[token - 1 :]

    def rest_on(self, account: int) -> None:
        """Make ``account`` the one that is open outside of all spans, from now on."""
        self.settle()
        if self.stack:
            self.stack[0] = account
        else:
            self.current = account

    def settle(self) -> int:
        """Book the open account up to now and return now, in monotonic nanoseconds."""
        now = perf_counter_ns()
        self.accounts[self.current] += now - self.mark
        self.mark = now
        return now

    def skip(self) -> None:
        """Leave the time since the last booking out of all accounts: it is not the training's."""
        self.mark = perf_counter_ns()

    def move(self, duration_ns: int, target: int) -> None:
        """Take the last ``duration_ns`` of the open account over to ``target``."""
        self.settle()
        self.accounts[self.current] -= duration_ns
        self.accounts[target] += duration_ns

    def inside(self, account: int) -> bool:
        """Tell whether ``account`` is open, or waits below the open one."""
        return self.current == account or account in self.stack
