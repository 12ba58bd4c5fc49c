"""Run one command as our child, and stand aside while it runs.

The child stays in our process group with our standard streams. What the terminal sends reaches it
directly; what is sent to us alone is passed on; when it stops, we stop; when it ends, we end the
same way (``leave``). ``docs/launch.md`` says what is passed through and what cannot be.

Call it from the main thread, before other threads are started: a thread that does not block the
signals would receive them in our place.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from hotlap.errors import WrongUse
from hotlap.launch.command import resolve
from hotlap.launch.signals import (
    FROM_TERMINAL,
    STOPS,
    Blocked,
    pending,
    settle,
    take,
    take_all,
    undone_by,
)
from hotlap.launch.witness import Witness

_IDLE_S = 3600.0


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    exit_code: the child's own; negative when that signal killed it.
    spawn_ns, exit_ns: monotonic instants just before the start and just after the end was seen.
    poll_fault: the first error that the poll callback raised, in words; None if it never did.
    """

    exit_code: int
    spawn_ns: int
    exit_ns: int
    poll_fault: str | None = None


def run_child(
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str] | None = None,
    *,
    on_start: Callable[[int], None] | None = None,
    on_poll: Callable[[], None] | None = None,
    poll_s: float = 0.5,
) -> Outcome:
    """Start a command, wait for its end, and return how it ended.

    argv: the command, as ``command.complete`` returned it.
    environ: the child's whole environment.
    cwd: the folder to start in; None for ours.
    on_start: called once with the child's pid, after it was started.
    on_poll: called about every ``poll_s`` seconds in this thread while the child runs. An error
        of either callback is remembered in the outcome and never disturbs the child.
    Raises WrongUse when no child could be started.
    """
    with Blocked() as blocked:
        witness = _witness()
        try:
            started = _spawn(argv, environ, cwd, blocked.before)
            if witness:
                witness.guard(started[0])
            child = Child(started, witness)
            with _children_waited_for(), _surviving_our_crash(witness):
                return child.wait(on_start, on_poll, poll_s)
        finally:
            if witness:
                witness.dismiss()


class Child:
    """A command that runs. Its end is awaited once, by ``wait``."""

    def __init__(self, started: tuple[int, int], witness: Witness | None) -> None:
        """started: pid, and the monotonic instant of the start. witness: None if there is none."""
        self.pid, self.spawn_ns = started
        self._witness = witness
        # What came while the child was being made: to the group or to us, it was for the command,
        # which may not have been there to get it.
        self._early = pending()
        self._group: set[int] = set()
        self._is_stopped = False
        self._stop_asked = False
        self._poll_fault: str | None = None

    def wait(
        self,
        on_start: Callable[[int], None] | None,
        on_poll: Callable[[], None] | None,
        poll_s: float,
    ) -> Outcome:
        """Pass signals on, stop and continue with the child, and return how it ended."""
        if on_start:
            self._call(lambda: on_start(self.pid))
        next_poll = time.monotonic() + poll_s
        while (exit_code := self._look()) is None:
            left = next_poll - time.monotonic() if on_poll else _IDLE_S
            number = take(left)
            if number is not None and number != signal.SIGCHLD:
                self._signals(number)
            if on_poll and time.monotonic() >= next_poll:
                self._call(on_poll)
                next_poll = time.monotonic() + poll_s
        return Outcome(exit_code, self.spawn_ns, time.monotonic_ns(), self._poll_fault)

    def _look(self) -> int | None:
        """Return the exit code if the child has ended; stop with it if it has stopped."""
        options = os.WNOHANG | os.WUNTRACED | getattr(os, "WCONTINUED", 0)
        while True:
            pid, status = os.waitpid(self.pid, options)
            if pid == 0:
                return None
            if os.WIFSTOPPED(status):
                self._stopped(os.WSTOPSIG(status))
            elif hasattr(os, "WIFCONTINUED") and os.WIFCONTINUED(status):
                self._is_stopped = self._stop_asked = False
            else:
                return os.waitstatus_to_exitcode(status)

    def _signals(self, first: int) -> None:
        """Act on a signal that came to us, and on all that came just after it."""
        settle()
        came, is_witnessed = self._collect(first)
        undone = undone_by(self._group.union(came))
        for number in came:
            went_to_group = number in self._group
            self._group.discard(number)
            if number == signal.SIGCHLD:
                continue
            if number in self._early:
                self._early.discard(number)
                went_to_group = False
            elif number in undone:
                went_to_group = True
            elif not is_witnessed:
                went_to_group = number in FROM_TERMINAL
            self._act(number, went_to_group)

    def _collect(self, first: int) -> tuple[list[int], bool]:
        """Return what came, each once, and whether the witness could be asked about it.

        First ours, then the witness's, until nothing is left here: whatever comes in between
        shows in the next round, in both places.
        """
        came = {first: None}
        while True:
            came.update(dict.fromkeys(take_all()))
            seen = self._witness.saw() if self._witness else None
            if seen is None:
                return list(came), False
            self._group |= seen
            if not pending():
                return list(came), True

    def _act(self, number: int, went_to_group: bool) -> None:
        """Pass on what came to us alone; stop where the child had stopped before we were asked."""
        if not went_to_group:
            self._pass_on(number)
        elif number in STOPS:
            self._stop_asked = True
            if self._is_stopped:
                stop_ourselves(number)

    def _pass_on(self, number: int) -> None:
        # PermissionError: the command changed its user (sudo). Alone the sender would have been
        # told so; we have no way to tell.
        with contextlib.suppress(PermissionError):
            os.kill(self.pid, number)

    def _stopped(self, number: int) -> None:
        """Stop as the child stopped, so that the shell gets its prompt back.

        A child that somebody stopped with SIGSTOP by its own pid will be continued by its own pid:
        stopping with it would leave us stopped for ever. Unless a terminal asked before: then the
        command only tidied up first.
        """
        self._is_stopped = True
        if number in STOPS or self._stop_asked:
            stop_ourselves(number)

    def _call(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as error:  # our own failure must not disturb the command
            self._poll_fault = self._poll_fault or f"{type(error).__name__}: {error}"


def stop_ourselves(number: int) -> None:
    """Stop this process by a stop signal, as the shell is to see it; return when continued."""
    if number not in STOPS:
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    before = signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    if before is not None:  # None: set by other code than Python's, which we cannot name
        signal.signal(number, before)


def leave(exit_code: int) -> NoReturn:
    """End this process as the child ended; does not return.

    A child that was killed by a signal is followed by the same signal, so that a shell sees
    128 + N, says the same words, and breaks off its script after Ctrl-C. Our standard streams are
    flushed; nothing else of ours is run, so finish before.

    exit_code: the child's; negative when that signal killed it.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    if exit_code < 0:
        die_by(-exit_code)
    os._exit(exit_code if exit_code >= 0 else 128 - exit_code)


def die_by(number: int) -> None:
    """Kill this process by a signal, without a core dump. Returns only if the signal cannot."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        # 1, not 0: a core pattern that is a pipe to a program disregards 0 and honours 1.
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        soft = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    faulthandler.disable()
    with contextlib.suppress(OSError, ValueError):  # KILL has no disposition
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


def _spawn(
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    mask: set[signal.Signals | int],
) -> tuple[int, int]:
    """Start the command; return its pid and the monotonic instant just before.

    Of the signals only SIGPIPE and SIGXFSZ need a hand: Python ignores them at its own start. A
    handler becomes the default by exec, what was ignored stays ignored, the mask is the one that
    we came with. Descriptors that we inherited are inherited on (ours are all close-on-exec).
    """
    with _inside(cwd):
        path = resolve(argv, environ)
        spawn_ns = time.monotonic_ns()
        try:
            return _posix_spawn(path, argv, environ, mask), spawn_ns
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise WrongUse(_cannot_start(path, error)) from error
        # A script without a #! line: every shell runs it itself.
        as_script = ["/bin/sh", path, *argv[1:]]
        return _posix_spawn(as_script[0], as_script, environ, mask), spawn_ns


def _cannot_start(path: str, error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return f"Cannot start {path!r}: the interpreter that its first line names does not exist."
    return f"Cannot start {path!r}: {error.strerror}."


def _posix_spawn(
    path: str,
    argv: Sequence[str],
    environ: Mapping[str, str],
    mask: set[signal.Signals | int],
) -> int:
    return os.posix_spawn(
        path,
        list(argv),
        dict(environ),
        setsigmask=mask,
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
    )


@contextlib.contextmanager
def _inside(cwd: str | os.PathLike[str] | None) -> Iterator[None]:
    """Be in another folder for the time of a start (``posix_spawn`` takes none)."""
    if cwd is None or os.path.realpath(cwd) == os.getcwd():
        yield
        return
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(cwd)
        yield
    except FileNotFoundError as error:
        raise WrongUse(f"Cannot start in {os.fspath(cwd)!r}: no such folder.") from error
    finally:
        os.fchdir(here)
        os.close(here)


def _witness() -> Witness | None:
    try:
        return Witness()
    except OSError:
        return None


@contextlib.contextmanager
def _surviving_our_crash(witness: Witness | None) -> Iterator[None]:
    """Let the witness tell a crash of ours, which the child survives, from a SIGKILL."""
    if witness is None:
        yield
        return
    was_enabled = faulthandler.is_enabled()
    faulthandler.enable(witness.ask_fd)
    try:
        yield
    finally:
        faulthandler.disable()
        if was_enabled:
            with contextlib.suppress(Exception):
                faulthandler.enable()


@contextlib.contextmanager
def _children_waited_for() -> Iterator[None]:
    """Undo an inherited "ignore" of SIGCHLD in us, by which the exit code would be lost.

    After the start, so that the child has inherited it as it would have alone.
    """
    before = signal.getsignal(signal.SIGCHLD)
    if before is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before)
