"""The public API, for notebooks, isolated interpreters and explicit marks.

    with hotlap.measure():
        train()

The same recorder as ``hotlap run`` uses; every patch is undone at the end. In a script that runs
without hotlap, ``step`` and ``phase`` do nothing, so marks can stay in the code.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from hotlap.errors import NotMeasurable
from hotlap.values.phase import ACCOUNTS
from hotlap.values.summary import RunSummary

__all__ = ["Measurement", "measure", "phase", "prepare", "step", "unprepare"]

PHASES: Final = ACCOUNTS
"""Names that ``phase`` takes: the step phases, and the run phases inside a training."""

_SAMPLE_EVERY_NS: Final = 5_000_000_000


@dataclass
class Measurement:
    """A run that is being measured, or has been.

    run: its folder, which ``hotlap report`` takes too. summary: None until the block has ended.
    """

    run: Path
    summary: RunSummary | None = None

    def report(self, width: int = 90) -> str:
        """Return the report of the whole run as text; raises NotMeasurable before its end."""
        from hotlap.report.whole import whole

        if self.summary is None:
            raise NotMeasurable(f"{self.run} is still being measured: ask after the with block")
        return whole(self.summary, width)


@contextlib.contextmanager
def measure(
    output: str | os.PathLike[str] | None = None, show: bool = True
) -> Iterator[Measurement]:
    """Measure the training inside a ``with`` block, in this process.

    output: folder for the record; None for a new one in ``.hotlap/runs``. show: print the report
    at the end. Yields a Measurement. Exceptions of the block pass through unchanged.
    Under ``hotlap run`` the run is being measured already: then nothing is added.
    Raises NotMeasurable when torch cannot be imported or no record can be kept.
    Cost inside a step: that of ``hotlap run``.
    """
    from hotlap.inject import session as sessions

    current = sessions.current()
    if current is not None:
        yield Measurement(current.recorder.run)
        return
    _need_torch()
    block = _Block(None if output is None else Path(output))
    failed = True
    try:
        yield block.measurement
        failed = False
    finally:
        block.end(failed)
        if show and block.measurement.summary is not None:
            sys.stdout.write("\n" + block.measurement.report() + "\n")


def step() -> None:
    """Mark the end of a step. Once marked, only marks end steps: they beat every heuristic.

    Does nothing where nothing is measured. Cost: 2 us.
    """
    from hotlap.inject import session as sessions
    from hotlap.probe.timeline import BY_HAND

    current = sessions.current()
    if current is not None and current.recorder.ledger.mine():
        current.recorder.timeline.tick(BY_HAND)


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Book the time of a ``with`` block as one phase, except what inner phases take out of it.

    name: one of ``PHASES``; raises ValueError for another. Does nothing where nothing is measured.
    Cost: 3 us.
    """
    if name not in PHASES:
        raise ValueError(f"no phase {name!r}; there are: {', '.join(PHASES)}")
    from hotlap.inject import session as sessions

    current = sessions.current()
    if current is None or not current.recorder.ledger.mine():
        yield
        return
    ledger = current.recorder.ledger
    token = ledger.enter(PHASES.index(name))
    try:
        yield
    finally:
        ledger.leave(token)


def prepare(*objects: Any, plan: str | os.PathLike[str] | None = None) -> Any:
    """Apply a plan of ``hotlap tune`` in this process, from here on.

        loader, model, optimizer = hotlap.prepare(loader, model, optimizer)

    objects: loaders and optimizers that were made before, and anything else; what is made after
    this call is changed without being given. plan: a plan's file; None for ``hotlap.plan.toml``
    in the current folder, else beside the script. Without one there, everything stays as it is.
    Returns the same objects, in order: one alone as it is, several as a tuple.

    Where ``hotlap run --plan``, ``diagnose`` or ``tune`` started this process, nothing is done:
    tuning starts from the script as it stands without a plan. What cannot be applied here, such
    as variables that a process must be started with, is left out with a warning.
    Raises WrongUse when the file is no plan, NotMeasurable when torch cannot be imported.
    Cost: that of the plan's knobs. ``unprepare`` undoes it.
    """
    from hotlap.inject import prepared

    file = _plan_file(plan)
    given = objects[0] if len(objects) == 1 else objects
    if prepared.is_settled_outside():
        return given
    if file is None:
        _warn("there is no hotlap.plan.toml here or beside the script: nothing is changed")
        return given
    _need_torch()
    from hotlap.tune.choice import applied_here

    applied = applied_here(file, os.environ)
    variables = {one.knob: one.environment for one in applied.plan.choices if one.environment}
    known = {key: value for key, value in variables.items() if key in applied.settings}
    on = prepared.put_on(applied.settings, known)
    on.give(objects)
    for knob, because in applied.left_out.items():
        _warn(f"{knob} of {file} is left out: {because}")
    for knob, missing in on.too_late().items():
        words = " ".join(f"{key}={value}" for key, value in missing.items())
        _warn(f"{knob} of {file} is left out: the process has to be started with {words}")
    return given


def unprepare() -> None:
    """Undo what ``prepare`` changed in this process; nothing where it changed nothing."""
    from hotlap.inject import prepared

    prepared.take_off()


def _plan_file(plan: str | os.PathLike[str] | None) -> str | None:
    from hotlap.tune.plan_file import NAME

    if plan is not None:
        return os.fspath(plan)
    places = (Path.cwd(), Path(sys.argv[0] or ".").resolve().parent)
    return next((str(one / NAME) for one in places if (one / NAME).is_file()), None)


def _warn(words: str) -> None:
    warnings.warn(f"hotlap.prepare: {words}", stacklevel=3)


def _need_torch() -> None:
    try:
        import torch  # noqa: F401 - the sites look for it among the loaded modules
    except ImportError as error:
        raise NotMeasurable(f"hotlap works on PyTorch, and torch is missing: {error}") from error


class _Block:
    """What a ``measure`` block keeps: session, manifest, samples of the machine."""

    def __init__(self, output: Path | None) -> None:
        import hotlap
        from hotlap.inject import session as sessions
        from hotlap.machine.facts import machine_facts
        from hotlap.machine.sampler import Sampler
        from hotlap.runs import layout
        from hotlap.runs.recording import Recording
        from hotlap.runs.store import make_run, open_store

        start = Path.cwd()
        self._store = open_store(start) if output is None else None
        run = make_run(output) if output is not None else open_store(start).new()
        self.measurement = Measurement(run)
        self._manifest: dict[str, Any] = {
            "format": 1,
            "id": run.name,
            "hotlap_version": hotlap.__version__,
            "command": ["hotlap.measure()", *sys.argv[:1]],
            "cwd": str(start),
            "host": socket.gethostname(),
            "started": datetime.now().astimezone().isoformat(timespec="seconds"),
            "launcher_pid": os.getpid(),
            "machine": machine_facts([start]),
            "spawn_ns": time.monotonic_ns(),
            "exit_ns": None,
            "exit_code": None,
        }
        self._write()
        self._samples = Recording(run / layout.MACHINE_FILE, "machine")
        self._sampler = Sampler(os.getpid())
        self._next_sample_ns = 0
        self._session = sessions.begin(run, str(start), start_ns=self._manifest["spawn_ns"])
        self._session.recorder.journal.status.append(self._sample)
        self._sample()

    def end(self, failed: bool) -> None:
        """End the session, undo its patches, and account for the run."""
        from hotlap.account.summarise import summarise
        from hotlap.inject import session as sessions
        from hotlap.runs.reading import read_run

        self._next_sample_ns = 0
        self._sample()
        sessions.finish(self._session)
        self._sampler.close()
        self._manifest["exit_ns"] = time.monotonic_ns()
        self._manifest["exit_code"] = 1 if failed else 0
        self._write()
        self.measurement.summary = summary = summarise(read_run(self.measurement.run))
        if summary.trainers:
            self._manifest["steps"] = summary.trainers[0].step.steps
            self._write()
        with contextlib.suppress(Exception):  # the block has trained: its end must not raise for us
            self._keep_report()
        if self._store is not None:
            self._store.prune()

    def _keep_report(self) -> None:
        from hotlap.runs import layout

        text = self.measurement.report() + "\n"
        path = self.measurement.run / layout.REPORT
        path.write_bytes(text.encode("utf-8", "backslashreplace"))

    def _sample(self) -> None:
        from hotlap.runs import frames

        now = time.monotonic_ns()
        if now >= self._next_sample_ns:
            self._next_sample_ns = now + _SAMPLE_EVERY_NS
            self._samples.add(frames.encode_json("smpl", self._sampler.sample()))
            self._samples.flush()

    def _write(self) -> None:
        from hotlap.runs.store import write_manifest

        write_manifest(self.measurement.run, self._manifest)
