"""Where commands are observed: once bare, once through us. Nothing here knows which is which."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
BARE: tuple[str, ...] = ()
THROUGH_US = (sys.executable, str(HERE / "launch_driver.py"))
THROUGH_ALL_OF_US = (sys.executable, str(HERE / "launch_cli.py"))
PATIENCE_S = 60.0
"""When a test gives up; no result depends on it."""

_LEADER = (
    "import fcntl, os, signal, sys, termios\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


def child(*words: str) -> list[str]:
    """Return the command that does one of the things of ``launch_child``."""
    return [sys.executable, str(HERE / "launch_child.py"), *words]


class Stage:
    """A command on pipes, in a session of its own."""

    def __init__(self, command: list[str], **more: object) -> None:
        self.process = subprocess.Popen(  # type: ignore[call-overload]
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            **more,
        )
        self.pid: int = self.process.pid

    def line(self) -> str:
        """Return the next line that the command says; empty at the end of its output."""
        said = b""
        while not said.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
                raise AssertionError(f"no line came; there is {said!r}")
            byte = os.read(self.process.stdout.fileno(), 1)
            if not byte:
                break
            said += byte
        return said.decode().strip()

    def ready(self) -> int:
        """Wait until the command is ready; return the pid that it says."""
        word, pid = self.line().split()
        assert word == "ready"
        return int(pid)

    def end(self) -> int:
        """Return how the process that we started ended, as ``Popen.returncode``."""
        return int(self.process.wait(PATIENCE_S))


@contextlib.contextmanager
def on_stage(command: list[str], **more: object) -> Iterator[Stage]:
    """Start a command; at the end kill what is left of its session's first group."""
    stage = Stage(command, **more)
    try:
        yield stage
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(stage.pid, signal.SIGKILL)
        stage.process.stdin.close()
        stage.process.stdout.close()
        stage.process.wait()


class Terminal:
    """A command on a terminal of its own, whose session it leads."""

    def __init__(self, command: list[str], **variables: str) -> None:
        self._master, slave = pty.openpty()
        environ = {
            **os.environ,
            "PS1": "$ ",
            "TERM": "dumb",
            "HISTFILE": "",
            "BASH_SILENCE_DEPRECATION_WARNING": "1",
            **variables,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LEADER, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=environ,
        )
        os.close(slave)
        self.heard = b""

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._master, keys.encode())

    def expect(self, pattern: str) -> re.Match[bytes]:
        """Wait for a pattern in the output; what is before it and itself is consumed."""
        until = time.monotonic() + PATIENCE_S
        while not (match := re.search(pattern.encode(), self.heard)):
            if not self._hear(until):
                raise AssertionError(f"{pattern!r} did not come; there is {self.heard!r}")
        self.heard = self.heard[match.end() :]
        return match

    def rest(self) -> str:
        """Return all output up to the end."""
        until = time.monotonic() + PATIENCE_S
        while self._hear(until):
            pass
        return self.heard.decode()

    def end(self) -> int:
        """Return how the leader ended."""
        return self.process.wait(PATIENCE_S)

    def hang_up(self) -> None:
        """Take the terminal away."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def _hear(self, until: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, until - time.monotonic()))
        try:
            heard = os.read(self._master, 65536) if ready else b""
        except OSError:  # Linux: nobody has the other end open any more
            heard = b""
        self.heard += heard
        return bool(heard)


@contextlib.contextmanager
def at_terminal(command: list[str], **variables: str) -> Iterator[Terminal]:
    """Start a command at a terminal; at the end take it away and kill its whole session."""
    terminal = Terminal(command, **variables)
    try:
        yield terminal
    finally:
        terminal.hang_up()
        for pid in session(terminal.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        terminal.process.wait()


def shell() -> list[str]:
    """Return an interactive shell with job control."""
    return ["bash", "--norc", "--noprofile", "-i"]


def session(sid: int) -> list[int]:
    """Return the processes of a session, those that ended and wait for their parent left out."""
    return [pid for pid, state, _, of in _processes() if of == sid and state != "Z"]


def group(pgid: int) -> list[int]:
    """Return the living processes of a process group."""
    return [pid for pid, state, of, _ in _processes() if of == pgid and state != "Z"]


def state(pid: int) -> str:
    """Return the state letter of a process (T: stopped), empty when it is gone."""
    return next((state for one, state, _, _ in _processes() if one == pid), "")


def wait_until(condition: object) -> None:
    """Wait until a condition holds."""
    until = time.monotonic() + PATIENCE_S
    while not condition():  # type: ignore[operator]
        if time.monotonic() > until:
            raise AssertionError("it never came")
        time.sleep(0.01)


def _processes() -> Iterator[tuple[int, str, int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), fields[0], int(fields[2]), int(fields[3])
