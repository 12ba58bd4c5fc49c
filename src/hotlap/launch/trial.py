"""One trial from outside: a command that runs contained, in the background, for a bounded time.

Unlike ``launch.child`` it has no terminal: its output goes to a file, its input is empty, and
Ctrl-C is ours. When it ends, and however we end, nothing that it started is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from hotlap.errors import NotMeasurable
from hotlap.launch import containment
from hotlap.launch.command import resolve

_SCRATCH: Final = ".hotlap-trial-"
_READY_S: Final = 30.0
_STOP_S: Final = 10.0
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from hotlap.launch.supervisor import main; sys.exit(main(sys.argv[1:]))"
)


WAYS: Final = ("overlay", "copies", "open")
"""``overlay``: every writable place becomes a private copy. ``copies``: the command is given
copies of its folders (``launch.copies``) and may write nowhere else. ``open``: it writes where it
likes."""


class NotContained(NotMeasurable):
    """Writes of a trial would reach the user's files here; the message says why."""


@dataclass(frozen=True)
class Job:
    """What a trial runs.

    argv, environ, cwd: as for ``launch.child.run_child``. output: file for what it prints.
    through: folders whose changes are real (the trial's own record).
    contain: of ``WAYS``. scratch: folders that hold the copies, where there are copies.
    limit_s: wall time after which it is stopped.
    """

    argv: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path
    output: Path
    through: Sequence[Path] = ()
    contain: str = "overlay"
    limit_s: float = 3600.0
    scratch: Sequence[Path] = ()


@dataclass(frozen=True)
class Ended:
    """How a trial ended.

    exit_code: the command's own, negative when a signal killed it; None when that was lost.
    by: ``itself``, ``limit`` (we stopped it), ``asked`` (the callback did), ``interrupt``
    (Ctrl-C) or ``lost`` (its supervisor was killed).
    copies, read_only: what was contained, and how.
    """

    exit_code: int | None
    by: str
    spawn_ns: int
    exit_ns: int
    copies: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    faults: tuple[str, ...] = field(default=())


def run_trial(
    job: Job,
    on_start: Callable[[int], None] | None = None,
    on_poll: Callable[[], bool] | None = None,
    poll_s: float = 0.25,
) -> Ended:
    """Run a command as a trial and return how it ended.

    on_start: called with the command's pid. on_poll: called about every ``poll_s`` seconds; True
    asks for the end. Errors of either are remembered and never disturb the trial.
    Raises NotContained when writes cannot be kept from the user's files, WrongUse when there is
    no such command. Ctrl-C ends the trial and is told by the result.
    """
    path = resolve(job.argv, job.environ)
    with _scratch(job) as scratch:
        trial = _Trial(job, path, scratch)
        try:
            trial.make_ready()
            return trial.watch(on_start, on_poll, poll_s)
        finally:
            trial.close()


class _Trial:
    """A supervisor and our two pipes to it."""

    def __init__(self, job: Job, path: str, scratch: Sequence[str]) -> None:
        self._job = job
        self._faults: list[str] = []
        self._news_text = b""
        self._contained: dict[str, Any] = {}
        self._places = places(job.cwd, job.environ)
        if job.contain == "copies":
            self._places = places(Path.cwd(), os.environ)
        orders, self._orders = os.pipe()
        self._news, news = os.pipe()
        message = {
            "argv": list(job.argv),
            "path": os.path.abspath(path) if os.sep in path else path,
            "cwd": str(job.cwd),
            "contain": job.contain,
            "must": self._places,
            "scratch": list(scratch),
            "through": [str(one) for one in job.through],
            "token": secrets.token_hex(8),
            "orders_fd": orders,
            "news_fd": news,
        }
        package_parent = str(Path(__file__).resolve().parents[2])
        self.spawn_ns = time.monotonic_ns()
        try:
            with open(job.output, "ab") as output:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-c", _PROGRAM, package_parent, json.dumps(message)],
                    env=dict(job.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(orders, news),
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._orders)
            os.close(self._news)
            raise
        finally:
            os.close(orders)
            os.close(news)

    def make_ready(self) -> None:
        """Wait until the trial is contained, and look whether it is; raises NotContained."""
        if self._job.contain == "open":
            return
        news = self._next_news(_READY_S)
        if news is None:
            raise NotContained(_why_not("mounting took too long, or its process was killed"))
        if "refused" in news:
            at = f" ({news['at']})" if news.get("at") else ""
            raise NotContained(_why_not(f"the kernel says: {news['refused']}{at}"))
        done = containment.Containment(**news)
        if leaked := containment.leaks(done):
            for path in leaked:
                with contextlib.suppress(OSError):
                    os.unlink(path)
            raise NotContained(_why_not(f"a file written inside was seen outside: {leaked[0]}"))
        if done.open_places:
            place, why = done.open_places[0]
            raise NotContained(_why_not(f"{place}: {why}"))
        if self._job.contain == "overlay":
            self._look_at_places(done)
        self._contained = news
        self._order(b"go\n")

    def _look_at_places(self, done: containment.Containment) -> None:
        """The start directory and the temporary folder must be writable inside if they are here."""
        probed = {os.path.realpath(os.path.dirname(path)) for path in done.probes}
        for place in self._places[:2]:
            if os.access(place, os.W_OK) and os.path.realpath(place) not in probed:
                why = [
                    f"{path}: {why}"
                    for path, why in done.failures
                    if containment.within(place, path)
                ]
                raise NotContained(_why_not("; ".join(why) or f"{place} cannot be written there"))

    def watch(
        self,
        on_start: Callable[[int], None] | None,
        on_poll: Callable[[], bool] | None,
        poll_s: float,
    ) -> Ended:
        """Wait for the end, and bring it about when it is due."""
        exit_code, by = None, "lost"
        until = time.monotonic() + self._job.limit_s
        asked_s: float | None = None
        reason = "itself"
        while True:
            try:
                news = self._next_news(poll_s)
                if news is not None and "started" in news and on_start:
                    self._safely(partial(on_start, int(news["started"])))
                if news is not None and "ended" in news:
                    exit_code, by = news["ended"], reason
                    break
                if news is None and self._process.poll() is not None and not self._has_news():
                    break
                wants_end = bool(on_poll and self._safely(on_poll))
            except KeyboardInterrupt:
                self._order(b"kill\n")
                reason = "interrupt"
                asked_s = time.monotonic()
                continue
            now = time.monotonic()
            if asked_s is None and (now >= until or wants_end):
                reason = "limit" if now >= until else "asked"
                self._order(b"stop\n")
                asked_s = now
            elif asked_s is not None and now - asked_s > _STOP_S:
                self._order(b"kill\n")
        return Ended(
            exit_code,
            by,
            self.spawn_ns,
            time.monotonic_ns(),
            tuple(self._contained.get("copies", ())),
            tuple(self._contained.get("read_only", ())),
            tuple(self._faults),
        )

    def close(self) -> None:
        """Let the supervisor end, with all that is left below it."""
        self._order(b"kill\n")
        os.close(self._orders)
        while True:
            try:
                self._process.wait()
                break
            except KeyboardInterrupt:
                continue  # it is ending already
        # If it was killed itself, its session still is to go.
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        os.close(self._news)

    def _safely(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:  # our own failure must not disturb the trial
            self._faults.append(f"{type(error).__name__}: {error}")
            return None

    def _order(self, word: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._orders, word)

    def _has_news(self) -> bool:
        return b"\n" in self._news_text or bool(select.select([self._news], [], [], 0)[0])

    def _next_news(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next line of news; None when none came in time, or none can come."""
        until = time.monotonic() + timeout_s
        while b"\n" not in self._news_text:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._news], [], [], left)[0]:
                return None
            got = os.read(self._news, 65536)
            if not got:
                time.sleep(min(0.02, max(0.0, left)))
                return None
            self._news_text += got
        line, _, self._news_text = self._news_text.partition(b"\n")
        news: dict[str, Any] = json.loads(line)
        return news


def way_here(cwd: Path, environ: Mapping[str, str]) -> str:
    """Return how trials can be contained here: the first of ``WAYS`` that does.

    It is tried with a command that does nothing. Raises NotContained, with the reasons, when
    neither can.
    """
    whys = []
    with tempfile.TemporaryDirectory(prefix=f"{_SCRATCH}{os.getpid()}-") as folder:
        for way in WAYS[:2]:
            through = Path(folder) / way
            through.mkdir()
            job = Job(["true"], environ, cwd, through / "output", (through,), way, _READY_S)
            try:
                run_trial(job)
                return way
            except NotContained as error:
                whys.append(str(error))
    raise NotContained(whys[0])


def places(cwd: Path, environ: Mapping[str, str]) -> list[str]:
    """Return the folders that a script writes to most: where it starts, temporary files, home."""
    found = [str(cwd.resolve())]
    for path in (environ.get("TMPDIR", "/tmp"), environ.get("HOME", ""), "/var/tmp"):
        if path and os.path.isdir(path):
            found.append(os.path.realpath(path))
    return list(dict.fromkeys(found))


@contextlib.contextmanager
def _scratch(job: Job) -> Iterator[list[str]]:
    """Make scratch folders for the copies in different trees, and remove them at the end.

    A tree cannot hold the layer that is laid over it, so no single place will do.
    """
    made: list[str] = [str(one) for one in job.scratch]
    if job.contain != "overlay":
        yield made
        return
    beside = [str(one.parent) for one in job.through]
    for where in (*beside, "/var/tmp", tempfile.gettempdir(), os.path.expanduser("~"), "/dev/shm"):
        with contextlib.suppress(OSError):
            made.append(tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-", dir=where))
    try:
        yield made
    finally:
        for path in made:
            containment.remove(path)
            shutil.rmtree(path, ignore_errors=True)


def _why_not(why: str) -> str:
    return (
        f"what the script writes in a trial cannot be kept from your files here: {why}. Nothing "
        "was run. If its output may be overwritten several times over, add --allow-writes"
    )
