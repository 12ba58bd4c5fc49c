"""One trial: the command once more, contained, with a plan for its inside, and its record."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

import hotlap
from hotlap.errors import UnreadableRun
from hotlap.experiment.compile_cache import CompileCache
from hotlap.launch.absence import explain
from hotlap.launch.copies import copies
from hotlap.launch.environ import child_environ, recorded_environ
from hotlap.launch.sampling import Sampling
from hotlap.launch.trackers import fresh_rendezvous, offline
from hotlap.launch.trial import Ended, Job, run_trial
from hotlap.machine.facts import machine_facts
from hotlap.runs import frames, layout
from hotlap.runs.reading import read_run
from hotlap.runs.recording import Recording
from hotlap.runs.store import write_manifest
from hotlap.values.handoff import Handoff
from hotlap.values.record import Record
from hotlap.values.secrets import redacted
from hotlap.values.trial import TrialPlan

CONDITIONS: Final = "conditions"
"""The site whose fault means that a trial does not go through its windows."""
_TRIALS: Final = "trials"
_CACHE: Final = "cache"
_OUTPUT: Final = "output.txt"
_LEAST_FREE_BYTES: Final = 64 << 20
_TAIL_BYTES: Final = 4000


class Progress(Protocol):
    """Who shows how far the trials are."""

    def begin(self, name: str, says: str, about_s: float) -> None:
        """A trial begins. says: what it is for. about_s: how long it may take."""

    def tick(self) -> None:
        """It goes on; called a few times a second."""

    def end(self, name: str, says: str, took_s: float) -> None:
        """It has ended. says: how."""


class Silent:
    """Shows nothing."""

    def begin(self, name: str, says: str, about_s: float) -> None:
        """Show nothing."""

    def tick(self) -> None:
        """Show nothing."""

    def end(self, name: str, says: str, took_s: float) -> None:
        """Show nothing."""


@dataclass(frozen=True)
class Trial:
    """A trial that was run. record: None when nothing of it can be read."""

    name: str
    plan: TrialPlan
    folder: Path
    ended: Ended
    record: Record | None
    tail: str = ""
    """The end of what the command printed."""

    @property
    def wall_s(self) -> float:
        """Return how long it took."""
        return (self.ended.exit_ns - self.ended.spawn_ns) / 1e9

    @property
    def is_sound(self) -> bool:
        """Tell whether it ended well, by itself or by the clean stop."""
        return self.ended.by == "itself" and self.ended.exit_code == 0

    def why_not(self) -> str:
        """Say in words how it ended, for a reader who misses its figures."""
        ended = self.ended
        if faults := [
            fault.error
            for one in (self.record.processes if self.record is not None else ())
            for fault in one.faults
            if fault.site == CONDITIONS
        ]:
            return f"hotlap itself failed inside this trial: {faults[0]}"
        if ended.by == "asked":
            return f"it did not end when it was asked to, and was ended after {self.wall_s:.0f} s"
        if ended.by == "limit":
            return (
                f"the trial was ended after {self.wall_s:.0f} s, the most that it was given "
                "(--budget SECONDS gives more)"
            )
        if ended.by == "interrupt":
            return "Ctrl-C ended the trial"
        if ended.by == "lost":
            return "the trial's processes were killed from outside"
        if ended.exit_code:
            last = next((line for line in reversed(self.tail.splitlines()) if line.strip()), "")
            said = f": {last.strip()[:200]}" if last else ""
            return f"the script failed in this trial ({_code(ended.exit_code)}){said}"
        return "the trial ended before it could be measured"

    def to_dict(self) -> dict[str, Any]:
        """Return what the list of trials in a report says of it."""
        return {
            "name": self.name,
            "folder": f"{_TRIALS}/{self.folder.name}",
            "wall_ns": self.ended.exit_ns - self.ended.spawn_ns,
            "ended_by": self.ended.by,
            "exit_code": self.ended.exit_code,
            "contained": bool(self.ended.copies),
        }


@dataclass(frozen=True)
class _Place:
    """Where one trial runs."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    start: Path
    scratch: Sequence[Path]


@dataclass
class Lab:
    """Where the trials of one diagnosis are run.

    argv: the complete command. environ: the user's. start: the start directory.
    folder: the diagnosis' own run directory. way: how what is written is kept from the user's
    files, of ``launch.trial.WAYS``.
    """

    argv: Sequence[str]
    environ: Mapping[str, str]
    start: Path
    folder: Path
    way: str = "overlay"
    progress: Progress = field(default_factory=Silent)
    extra: Mapping[str, str] = field(default_factory=dict)
    """Variables that are set besides, in every trial."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Knobs that are on in every trial, by name."""
    done: list[Trial] = field(default_factory=list)
    is_interrupted: bool = False
    """Ctrl-C has ended the trials."""

    def __post_init__(self) -> None:
        self.cache = CompileCache(self.folder / _CACHE, self.environ)

    def run(
        self,
        name: str,
        plan: TrialPlan,
        limit_s: float,
        *,
        says: str = "",
        about_s: float | None = None,
        on_poll: Callable[[Path], bool] | None = None,
    ) -> Trial:
        """Run one trial and read its record.

        limit_s: wall time after which it is stopped. on_poll: asked with the trial's folder;
        True asks for the trial's end. Raises NotContained, WrongUse as ``run_trial``, OSError
        when the record cannot be written.
        """
        if not self.done:
            self.cache.begin()
        plan = replace(plan, settings={**self.settings, **plan.settings})
        folder = self.folder / _TRIALS / f"{len(self.done) + 1:02d}-{layout.plain(name)}"
        folder.mkdir(parents=True, mode=0o700)
        self.progress.begin(name, says, about_s if about_s is not None else limit_s)
        watch = _Watch(folder, on_poll, self.progress)
        with self._place() as place:
            manifest = self._manifest(folder, plan, place)
            ended = run_trial(self._job(folder, limit_s, place), watch.started, watch.look)
        if ended.by != "itself":
            self.cache.spoiled()
        manifest.update(spawn_ns=ended.spawn_ns, exit_ns=ended.exit_ns, exit_code=ended.exit_code)
        if ended.faults:
            manifest["fault"] = ended.faults[0]
        write_manifest(folder, manifest)
        trial = Trial(name, plan, folder, ended, _read(folder), _tail(folder / _OUTPUT))
        self.done.append(trial)
        said = "done" if trial.is_sound else trial.why_not()
        self.progress.end(name, said, trial.wall_s)
        return trial

    @contextlib.contextmanager
    def under(self, settings: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[None]:
        """Run trials under these knobs and variables, and no others, while the context lasts."""
        before = self.settings, self.extra
        self.settings, self.extra = settings, environment
        try:
            yield
        finally:
            self.settings, self.extra = before

    def close(self) -> None:
        """Remove what only trials need. Never raises."""
        self.cache.end()

    def room(self) -> str | None:
        """Say in words why another trial could not be recorded; None when it can."""
        free = shutil.disk_usage(self.folder).free
        if free < _LEAST_FREE_BYTES:
            return f"{self.folder} has {free >> 20} MiB left on its disk"
        return None

    @contextlib.contextmanager
    def _place(self) -> Iterator[_Place]:
        """Give the place where a trial runs: the user's own, or a copy of it."""
        if self.way != "copies":
            yield _Place(self.argv, self.environ, self.start, ())
            return
        with copies(self.argv, self.environ, self.start) as made:
            yield _Place(made.argv, made.environ, made.start, (made.root,))

    def _job(self, folder: Path, limit_s: float, place: _Place) -> Job:
        own = folder / "trackers"
        own.mkdir(mode=0o700, exist_ok=True)
        site = Path(hotlap.__file__).resolve().parent / "inject" / "site"
        environ = child_environ(place.environ, site, folder / layout.HANDOFF)
        environ.update(offline(self.environ, own))
        environ.update(fresh_rendezvous(self.environ))
        environ.update(self.cache.variables())
        environ.update(self.extra)
        return Job(
            place.argv,
            environ,
            place.start,
            folder / _OUTPUT,
            (folder, *self.cache.through()),
            self.way,
            limit_s,
            place.scratch,
        )

    def _manifest(self, folder: Path, plan: TrialPlan, place: _Place) -> dict[str, Any]:
        handoff = Handoff(
            run_dir=str(folder),
            package_dir=str(Path(hotlap.__file__).resolve().parent),
            start_dir=str(place.start),
            started_ns=time.monotonic_ns(),
            trial=plan.to_dict(),
        )
        (folder / layout.HANDOFF).write_text(handoff.to_json())
        manifest = {
            **manifest_of(folder, self.argv, self.start, self.environ),
            "trial": plan.to_dict(),
            "machine": machine_facts([self.start]),
        }
        write_manifest(folder, manifest)
        return manifest


def manifest_of(
    folder: Path, argv: Sequence[str], start: Path, environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return the manifest of a run that begins now."""
    return {
        "format": 1,
        "id": folder.name,
        "hotlap_version": hotlap.__version__,
        "command": list(redacted(list(argv))),
        "cwd": str(start),
        "host": socket.gethostname(),
        "started": datetime.now().astimezone().isoformat(timespec="seconds"),
        "launcher_pid": os.getpid(),
        "environment": recorded_environ(environ),
        "spawn_ns": time.monotonic_ns(),
        "exit_ns": None,
        "exit_code": None,
    }


class _Watch:
    """What is done while a trial runs: samples of the machine, and looking whether it is due."""

    def __init__(
        self, folder: Path, on_poll: Callable[[Path], bool] | None, progress: Progress
    ) -> None:
        self._folder = folder
        self._progress = progress
        self._on_poll = on_poll
        self._samples = Recording(folder / layout.MACHINE_FILE, "machine")
        self._sampling: Sampling | None = None

    def started(self, pid: int) -> None:
        self._sampling = Sampling.of_tree(self._append, pid)

    def look(self) -> bool:
        self._progress.tick()
        if self._sampling is not None:
            self._sampling.tick()
        return bool(self._on_poll and self._on_poll(self._folder))

    def _append(self, sample: dict[str, Any]) -> None:
        self._samples.add(frames.encode_json("smpl", sample))
        self._samples.flush()


def absence_of(trial: Trial) -> str | None:
    """Say in words why nobody trained in a trial; None when somebody did."""
    if trial.record is None:
        return "nothing that the trial recorded can be read"
    why = explain(trial.record, trial.ended.exit_code)
    if why is not None and trial.ended.by != "itself":
        return f"{trial.why_not()}, before the first step was complete"
    return why


def why_nobody(trial: Trial) -> str:
    """Say in words why a trial saw no whole step."""
    why = absence_of(trial)
    if trial.ended.by != "itself":
        why = f"{trial.why_not()}; until then {why or 'no step was complete'}"
    elif trial.ended.exit_code:
        why = trial.why_not()
    return why or "no step was seen"


def _read(folder: Path) -> Record | None:
    try:
        return read_run(folder)
    except UnreadableRun:
        return None


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _code(exit_code: int) -> str:
    return f"killed by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
