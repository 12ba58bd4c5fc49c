"""A thread that looks at another thread's stack now and then, and says what it saw.

The time since the last look is what a look stands for: where the watched thread was in a long
call that holds the interpreter, the look comes late and counts for more. How the watched thread
spent that time is what the kernel counts for it: on a core, waiting for a core, and the rest.

A look that is due while Python code runs comes when that code gives the interpreter away: at the
next call that does so by itself, or after ``sys.getswitchinterval()``, 5 ms. So code that runs
for less between two such calls is seen at the second of them; ``Haste`` is the remedy. It needs
sleeps that end in time: the kernel lets them last 50 us longer, to wake up less often.

No frame outlives a look, and nothing of the user's is touched. With compiled hooks the interpreter
is not given away in between: the thread looked at cannot move on while it is looked at.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import sys
import time
import traceback
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread
from collections.abc import Callable, Mapping
from time import perf_counter_ns, thread_time_ns
from types import CodeType
from typing import Any, Final

import hotlap
from hotlap.fast.choice import stacks
from hotlap.fast.reference import Entries, Entry
from hotlap.inject.conditions.instructions import position
from hotlap.inject.conditions.thread_clocks import ThreadClocks, native_id_of
from hotlap.probe.places import Places

CALLERS: Final = 6
"""The user's frames that are kept outside of the innermost one."""
DEPTH: Final = 400
CODES: Final = 20_000
"""Code objects that are kept by name; what runs in others is not told apart."""
_LATE_NS: Final = 1_000_000
"""A look that comes so much after its time had to wait for the interpreter, or for a core."""
_WAITING_IN: Final = frozenset(
    ("threading.py", "queue.py", "queues.py", "selectors.py", "connection.py", "socket.py")
)
_OWN: Final = os.path.dirname(os.path.abspath(hotlap.__file__)) + os.sep
_LIBRARY, _USERS, _OURS, _WORKERS = range(4)
_WORKERS_FILE: Final = os.path.join("torch", "utils", "data", "_utils", "worker.py")
_WORKERS_LOOP: Final = "_worker_loop"
"""Outside of it a forked worker's stack is that of its parent when it forked."""
_PATIENCE_S: Final = 2.0
_SET_TIMER_SLACK: Final = 29
"""``PR_SET_TIMERSLACK`` of ``prctl(2)``, in nanoseconds, of the calling thread alone."""

Stack = tuple[tuple[tuple[int, int], ...], int]
"""The user's frames from the inside out, each the key of its code with the last instruction (for
the callers: with the line), and the key of the innermost code."""

OTHER: Final[Stack] = ((), -1)
NOTHING: Final[Stack] = ((), 0)

Look = Callable[[int, Stack, int, tuple[int, int] | None], None]
"""Takes the instant, the stack, the nanoseconds that it stands for, and how many of them the
thread was on a core and waited for one."""


class Stacks:
    """Turns frames into small keys, and remembers what the keys stand for."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._kinds: dict[str, int] = {}
        self._lines: dict[tuple[int, int], int] = {}
        self.codes: dict[int, tuple[CodeType, str]] = {}

    def of(self, entries: Entries | None) -> Stack:
        """Return the key of a stack. Cost: 2 us plus 0.1 us for each frame."""
        kinds = self._kinds
        leaf = 0
        mine: list[tuple[int, int]] = []
        if entries is None:
            return OTHER
        for entry in entries:
            code, last, _ = entry
            kind = kinds.get(code.co_filename)
            if kind is None:
                kind = self._judge(code.co_filename)
            if kind != _OURS and not leaf:
                leaf = self._known(entry)
                if not leaf:
                    return OTHER
            if kind == _USERS:
                if not self._known(entry):
                    return OTHER
                key = (id(code), last)
                mine.append(key if not mine else (key[0], self._line(key, code)))
                if len(mine) > CALLERS:
                    break
            elif kind == _WORKERS and code.co_name == _WORKERS_LOOP:
                break
        return tuple(mine), leaf

    def line(self, key: tuple[int, int]) -> int | None:
        """Return the line of an instruction."""
        return self._lines.get(key)

    def _line(self, key: tuple[int, int], code: CodeType) -> int:
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = position(code, key[1])[0]
        return line

    def _known(self, entry: Entry) -> int:
        """Return the key of a code object, 0 when there are too many. It is kept, so it stays."""
        code, _, module = entry
        key = id(code)
        if key not in self.codes:
            if len(self.codes) >= CODES:
                return 0
            self.codes[key] = (code, name_of(code, module))
        return key

    def _judge(self, filename: str) -> int:
        if filename.startswith(_OWN):
            kind = _OURS
        elif filename.endswith(_WORKERS_FILE):
            kind = _WORKERS
        else:
            kind = _USERS if self._places.is_users(filename) else _LIBRARY
        self._kinds[filename] = kind
        return kind


def name_of(code: CodeType, module: str | None) -> str:
    """Return the full name of a function."""
    name = getattr(code, "co_qualname", code.co_name)
    return name if module is None else f"{module}.{name}"


class Haste:
    """Lets the sampler have the interpreter sooner, while no other thread would notice.

    ``sys.setswitchinterval`` holds for all threads; so it is changed only while the thread looked
    at is the only one that runs Python code, and never against the script's own wish.

    switch_s: how long the sampler waits for the interpreter; None to leave the interval alone.
    """

    def __init__(self, switch_s: float | None) -> None:
        self._switch_s = switch_s
        self._usual = sys.getswitchinterval()
        self._theirs: float | None = None
        self._ours: float | None = None

    def suit(self, found: Mapping[int, Entries | None], *lookers: int) -> None:
        """Change the interval, or change it back. found: the stacks of all threads, by ident."""
        if self._switch_s is None:
            return
        alone = all(_rests(one) for ident, one in found.items() if ident not in lookers)
        if not alone:
            self.end()
        elif self._ours is None:
            self._theirs = sys.getswitchinterval()
            if self._theirs != self._usual:
                self._switch_s = None  # the script has set it before we came
                return
            sys.setswitchinterval(self._switch_s)
            self._ours = sys.getswitchinterval()
        elif sys.getswitchinterval() != self._ours:
            self._switch_s = None  # the script has set it meanwhile

    def end(self) -> None:
        """Change it back, unless the script has set it meanwhile."""
        if self._ours is not None and self._theirs is not None:
            if sys.getswitchinterval() == self._ours:
                sys.setswitchinterval(self._theirs)
            self._ours = None


def _rests(entries: Entries | None) -> bool:
    """Tell whether a thread waits for something, by the library that it waits in."""
    if not entries:
        return False
    code, _, _ = entries[0]
    return os.path.basename(code.co_filename) in _WAITING_IN


class Sampler:
    """Looks at one thread about ``hz`` times a second, at random intervals.

    target: tells which thread, by its ident. look: called for each look, in the sampler's thread.
    pause: called in that thread between two looks; may take its time.
    switch_s: see ``Haste``.
    The thread is one of ``_thread``: ``threading.enumerate`` does not show it. It takes no signals.
    """

    def __init__(
        self,
        hz: float,
        stacks: Stacks,
        target: Callable[[], int],
        look: Look,
        pause: Callable[[], None],
        switch_s: float | None = None,
    ) -> None:
        self.hz = hz
        self._haste = Haste(switch_s)
        self._stacks = stacks
        self._target = target
        self._look = look
        self._pause = pause
        self._chance = random.Random().random
        self._ident = 0
        self._clocks: ThreadClocks | None = None
        self._at = 0
        self._wake: Any = None
        self._done: Any = None
        self._native = self._own = 0
        self.failure: BaseException | None = None
        self.looks = self.late = 0
        self.late_ns = 0
        self.cost_ns = 0
        self._cost_before = 0

    @property
    def running(self) -> bool:
        """Tell whether the thread runs."""
        return self._done is not None

    def start(self) -> None:
        """Start the thread; the time since the last look, or since now, belongs to the next one."""
        if self._done is not None or self.failure is not None:
            return
        self._at = self._at or perf_counter_ns()
        self._wake, self._done = allocate_lock(), allocate_lock()
        self._wake.acquire()
        self._done.acquire()
        self._native = 0
        start_new_thread(self._run, (self._wake, self._done))

    def stop(self) -> bool:
        """End the thread and wait for it, two seconds at most; tell whether it has ended."""
        wake, done = self._wake, self._done
        if done is None:
            return True
        self._wake = self._done = None
        wake.release()
        ended = bool(done.acquire(timeout=_PATIENCE_S))
        if ended:
            self._wait_for_the_kernel()
        return ended

    def forked(self) -> None:
        """In a forked child: the thread did not come along, the descriptor did."""
        self._wake = self._done = None
        if self._clocks is not None:
            self._clocks.close()
            self._clocks = None
        self._ident = 0

    def _wait_for_the_kernel(self) -> None:
        # Python 3.12 warns of a fork when the kernel still counts a second thread.
        path = f"/proc/self/task/{self._native}"
        for _ in range(20):
            if not self._native or not os.path.exists(path):
                return
            time.sleep(0.0002)

    # -- in the thread ---------------------------------------------------------------------------

    def _run(self, wake: Any, done: Any) -> None:
        try:
            self._native, self._own = get_native_id(), get_ident()
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            _sleep_exactly()
            self._cost_before = self.cost_ns
            mean = 1.0 / self.hz
            self._turn_to(self._target())
            while True:
                pause = mean * (0.5 + self._chance())
                due = perf_counter_ns() + int(pause * 1e9)
                if wake.acquire(timeout=pause):
                    break
                self._sample(due)
                self.cost_ns = self._cost_before + thread_time_ns()
                self._pause()
        except BaseException as error:
            # As words: the error's frames would keep what they hold alive.
            place = traceback.extract_tb(error.__traceback__)[-1]
            line = f"{os.path.basename(place.filename)}:{place.lineno}"
            self.failure = RuntimeError(f"{type(error).__name__}: {error} ({line})")
        finally:
            self._haste.end()
            done.release()

    def _sample(self, due: int) -> None:
        ident = self._target()
        if ident != self._ident:
            self._turn_to(ident)
        now = perf_counter_ns()
        since = now - self._at
        spent = None if self._clocks is None else self._clocks.since(since)
        found = stacks((ident,), DEPTH)
        stack = self._stacks.of(found.get(ident, []))
        self._haste.suit(found, ident, self._own)
        self._at = now
        if stack == NOTHING:
            return  # the thread has ended
        self.looks += 1
        if now - due > _LATE_NS:
            self.late += 1
            self.late_ns += now - due
        self._look(now, stack, since, spent)

    def _turn_to(self, ident: int) -> None:
        """Watch another thread from now on."""
        if self._clocks is not None:
            self._clocks.close()
        native = native_id_of(ident)
        self._ident = ident
        self._clocks = ThreadClocks(native) if native is not None else None
        if self._clocks is not None:
            self._clocks.since(0)


def _sleep_exactly() -> None:
    """Let the sleeps of the calling thread end when they are over."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, 1, 0, 0, 0)
