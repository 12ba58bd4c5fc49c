"""The process between hotlap and a trial: contains it, waits for it, and leaves nothing behind.

It is started by ``launch.trial``, in a session of its own, and speaks with hotlap by two pipes:
lines of JSON about what happened, and words of command (``go``, ``stop``, ``kill``). The closing
of the command pipe means that hotlap is gone: then everything that the trial started is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from hotlap.launch import containment, kernel_mounts
from hotlap.launch.environ import read_given_environ

_GRACE_S: Final = 1.0
_ROUNDS: Final = 500


def main(words: list[str]) -> int:
    """Supervise one trial. words: the job as one JSON object; see ``launch.trial``."""
    job: dict[str, Any] = json.loads(words[0])
    kernel_mounts.adopt_orphans()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    supervisor = _Supervisor(job)
    signal.signal(signal.SIGTERM, supervisor.terminated)
    try:
        return supervisor.run()
    finally:
        supervisor.leave()


class _Supervisor:
    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self._orders: int = job["orders_fd"]
        self._news: int = job["news_fd"]
        for handle in (self._orders, self._news):
            os.set_inheritable(handle, False)
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._child = -1
        self._is_killed = False

    def run(self) -> int:
        """Start the command and wait for its end."""
        ready, going = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            try:
                signal.set_wakeup_fd(-1)
                self._become_command()
            finally:
                os._exit(127)
        os.close(going)
        os.read(ready, 1)  # until it has become the command, or has ended: it reads orders so far
        os.close(ready)
        self._tell({"started": self._child})
        status = self._wait()
        self._tell({"ended": os.waitstatus_to_exitcode(status)})
        return 0

    def terminated(self, *_: Any) -> None:
        """SIGTERM came to us alone: end the trial."""
        self._is_killed = True

    def leave(self) -> None:
        """Kill what the trial left running; its mounts go with it; then remove the copies."""
        until = time.monotonic() + (0.0 if self._is_killed else _GRACE_S)
        while descendants() and time.monotonic() < until:
            _reap()
            time.sleep(0.02)
        for _ in range(_ROUNDS):
            self._kill()
            _reap()
            if not descendants():
                break
            time.sleep(0.01)
        for path in self._job["scratch"]:
            containment.remove(path)

    def _become_command(self) -> None:
        """In the child: contain it, and put the command in its place. Returns if it must not."""
        os.setpgid(0, 0)
        kernel_mounts.die_with_parent(signal.SIGKILL)
        if self._job["contain"] != "open" and not self._contain():
            return
        # Once more: the kernel forgets it when the process gets other rights.
        kernel_mounts.die_with_parent(signal.SIGKILL)
        if os.getppid() == 1:
            return
        # The folder that we stand in lies below what was mounted over it.
        os.chdir(self._job["cwd"])
        environ = read_given_environ()
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        try:
            _execute(self._job["path"], self._job["argv"], environ)
        except OSError as error:
            os.write(2, f"hotlap: {self._job['path']} cannot be started: {error}\n".encode())

    def _contain(self) -> bool:
        """Contain this process; return whether hotlap said ``go``."""
        job = self._job
        try:
            if job["contain"] == "overlay":
                done = containment.contain(
                    job["must"], job["scratch"], job["through"], job["token"]
                )
            else:
                done = containment.forbid(job["must"], job["scratch"], job["through"], job["token"])
        except OSError as error:
            self._tell({"refused": f"{error.strerror or error}", "at": error.filename})
            return False
        self._tell(asdict(done))
        word = os.read(self._orders, 64)
        containment.forget_probes(done)
        return word.startswith(b"go")

    def _wait(self) -> int:
        """Return the status of the command's end; follow orders meanwhile."""
        while True:
            while (ended := _reap_one()) is not None:
                pid, status = ended
                if pid == self._child:
                    return status
            if self._is_killed:
                self._kill()
            handles = [self._wake] if self._is_killed else [self._wake, self._orders]
            ready, _, _ = select.select(handles, [], [], 0.05 if self._is_killed else None)
            if self._wake in ready:
                os.read(self._wake, 4096)
            if self._orders in ready and not self._is_killed:
                self._follow(os.read(self._orders, 64))

    def _follow(self, word: bytes) -> None:
        if word.startswith(b"stop"):
            with contextlib.suppress(OSError):
                os.kill(self._child, signal.SIGTERM)
        else:  # kill, or the end of hotlap
            self._is_killed = True

    def _kill(self) -> None:
        for pid in descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _tell(self, news: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # hotlap is gone; the orders' pipe tells it too
            os.write(self._news, json.dumps(news).encode() + b"\n")


def descendants() -> list[int]:
    """Return the processes below this one; those that have ended and wait for us left out.

    Without ``/proc`` only direct children are waited for, and the list is empty.
    """
    below: dict[int, list[int]] = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for name in names:
        try:
            words = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if words[0] not in ("Z", "X"):
            below.setdefault(int(words[1]), []).append(int(name))
    found, waiting = [], [os.getpid()]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _reap() -> None:
    while _reap_one() is not None:
        pass


def _reap_one() -> tuple[int, int] | None:
    """Return pid and status of a child that has ended; None when there is none."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _execute(path: str, argv: list[str], environ: dict[str, str]) -> None:
    try:
        os.execve(path, argv, environ)
    except OSError as error:
        if error.errno != 8:  # ENOEXEC: a script without a #! line is the shell's
            raise
        os.execve("/bin/sh", ["/bin/sh", path, *argv[1:]], environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
