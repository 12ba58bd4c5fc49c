"""A tiny process that tells whether a signal was meant for us alone or for our whole group.

A terminal's Ctrl-C, and ``kill -TERM -GROUP``, reach the user's command directly; ``kill -TERM
PID`` reaches only us and has to be passed on. The kernel does not say which it was. So a third
process of the same group blocks every signal and looks, when asked, which ones are pending for it:
what came to it too went to the group, and passing that on would deliver it twice (twice through a
checkpoint handler, twice through a clean-up).

It serves a second end. SIGKILL cannot be caught; who sends it to us means the command, whose place
we hold. The witness sees our end and, unless we said farewell or died by a fault of our own, kills
the command too. It holds no descriptor but its pipe, so it keeps nobody's output open, and it ends
when we end.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable
from typing import Final

_ASK: Final = b"?"
_GUARD: Final = b"!"
_FAREWELL: Final = b"."
_PID_BYTES: Final = 8
_MASK_BYTES: Final = 16
_ANSWER_S: Final = 0.5
"""A witness that takes longer is stopped or gone."""


class Witness:
    """The witness of our process group.

    Every signal that matters must be blocked in this thread before it is made, so that none can
    end the witness between its birth and its own mask.
    """

    def __init__(self) -> None:
        """Fork the witness. Raises OSError when no process or pipe can be had."""
        ask_end, self._ask = os.pipe()
        self._answer, answer_end = os.pipe()
        self._lost = False
        self.pid = os.fork()
        if self.pid == 0:
            _stand_by(ask_end, answer_end)
        os.close(ask_end)
        os.close(answer_end)

    @property
    def ask_fd(self) -> int:
        """The descriptor whose unexplained closing means that we were killed."""
        return self._ask

    def guard(self, child_pid: int) -> None:
        """Name the process that shares our fate when we are killed by SIGKILL."""
        self._send(_GUARD + child_pid.to_bytes(_PID_BYTES, "big"))

    def saw(self) -> set[int] | None:
        """Return the signals that came to the group since the last call; None if unknown.

        Once unknown, always unknown: a late answer must not be taken for that of a later question.
        """
        if self._lost:
            return None
        answer = b""
        if self._send(_ASK):
            readable, _, _ = select.select([self._answer], [], [], _ANSWER_S)
            answer = os.read(self._answer, _MASK_BYTES) if readable else b""
        if len(answer) != _MASK_BYTES:
            self._lost = True
            return None
        mask = int.from_bytes(answer, "big")
        return {number for number in range(8 * _MASK_BYTES) if mask >> number & 1}

    def dismiss(self) -> None:
        """End the witness: the command has ended, there is nothing left to tell."""
        self._send(_FAREWELL)
        # A stopped witness would never read the farewell, and we would wait for it for ever.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self._ask)
        os.close(self._answer)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _send(self, message: bytes) -> bool:
        # Python ignores SIGPIPE, so that a witness that was killed shows as an error here.
        try:
            return os.write(self._ask, message) == len(message)
        except OSError:
            return False


def _stand_by(ask_end: int, answer_end: int) -> None:
    """Be the witness; never returns."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        _keep_only(ask_end, answer_end)
        _serve(ask_end, answer_end)
    finally:
        os._exit(0)


def _keep_only(ask_end: int, answer_end: int) -> None:
    """Close every descriptor but the two pipe ends."""
    try:
        descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        descriptors = list(range(min(os.sysconf("SC_OPEN_MAX"), 4096)))
    for descriptor in descriptors:
        if descriptor not in (ask_end, answer_end):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _serve(ask: int, answer: int) -> None:
    """Answer questions until our maker is gone; then settle what is left to settle.

    Anything on the pipe that is no message of ours is the text of a crash, written by
    ``faulthandler``: then the command lives on.
    """
    guarded: Callable[[], None] | None = None
    while message := os.read(ask, 1):
        if message == _ASK:
            os.write(answer, _pending().to_bytes(_MASK_BYTES, "big"))
        elif message == _GUARD:
            guarded = _killer(int.from_bytes(os.read(ask, _PID_BYTES), "big"))
        else:
            return
    if guarded:
        guarded()


def _killer(pid: int) -> Callable[[], None]:
    """Return what kills this process, and no later one of the same number where possible."""
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return lambda: os.kill(pid, signal.SIGKILL)
    return lambda: signal.pidfd_send_signal(descriptor, signal.SIGKILL)


def _pending() -> int:
    """Take the signals that wait for this process; return them as a bit mask."""
    mask = 0
    while pending := signal.sigpending():
        mask |= 1 << signal.sigwait(pending)
    return mask
