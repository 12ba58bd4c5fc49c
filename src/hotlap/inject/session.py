"""One process's session: hub, patches and recorder, from coming in to undoing everything."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotlap.probe.recorder import Recorder
from hotlap.sites import catalogue, dynamo_frames
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

if TYPE_CHECKING:
    from hotlap.inject.conditions.conductor import Conditions
    from hotlap.inject.conditions.profiling import Profiling
    from hotlap.inject.conditions.settings import Settings

_current: Session | None = None


class Session:
    """hotlap inside one process.

    run: the run directory. start_dir: what source files are shown relative to.
    faults, disabled: see ``sites.hub.Hub``. start_ns: when what is measured began, in monotonic
    nanoseconds; None for the start of the process. withheld: why compiled hooks are not to be
    used; None: they may be, since ``imported`` will be called when Dynamo is imported.
    """

    def __init__(
        self,
        run: Path,
        start_dir: str,
        faults: Iterable[str] = (),
        disabled: Iterable[str] = (),
        start_ns: int | None = None,
        withheld: str | None = None,
    ) -> None:
        self._withheld = withheld
        self.recorder = Recorder(run, start_dir, start_ns)
        self._ended = False
        self.profiling: Profiling | None = None
        self.conditions: Conditions | None = None
        self.knobs: Settings | None = None
        self.patches = Patches()
        self.hub = Hub(self.recorder.fault, faults, disabled)
        self.watched = tuple(name for name in catalogue.WATCHED if name != "torch")

    def begin(self) -> None:
        """Subscribe, install the sites of every module that is there, listen to forks and exit."""
        if self.conditions is not None or self.profiling is not None:
            self._withheld = "in a trial, every tick has listeners"
        if self.knobs is not None:
            self._apply(self.knobs)  # below the observers, as if the script had done it
        self.recorder.attach(self.hub, self._withheld)
        if self.conditions is not None:
            self.conditions.attach()
        if self.profiling is not None:
            self.profiling.attach(self.hub)
        for name in catalogue.WATCHED:
            if name in sys.modules:
                self.imported(name)
        self.recorder.announce()
        if self.profiling is not None:
            self.profiling.begin()
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self.end)

    def _apply(self, knobs: Settings) -> None:
        """Put on the knobs of a plan. Their proofs are written with the recorder's own tables."""
        try:
            knobs.apply()
        except Exception as error:
            self.recorder.fault("plan", error)
        self._write_proofs(knobs)

    def _write_proofs(self, knobs: Settings) -> None:
        self.recorder.journal.status.append(knobs.stepped)
        self.recorder.beside_fetches = knobs.write

    def imported(self, name: str) -> None:
        """Install the sites that waited for this module. Never raises."""
        catalogue.install(name, self.hub, self.patches, self.recorder.fault)

    def end(self) -> None:
        """Write the farewell and undo every patch. May be called twice. Never raises."""
        self._ended = True
        if self.profiling is not None:
            self.profiling.stop()
        try:
            if self.conditions is not None:
                self.conditions.end()
            self.recorder.close()
        except Exception as error:
            self.recorder.fault("close", error)
        if self.profiling is not None:
            self.profiling.close()
        self.patches.undo()
        atexit.unregister(self.end)

    def _after_fork(self) -> None:
        if self._ended:
            return
        try:
            self.recorder.after_fork()
            if self.knobs is not None:
                self._write_proofs(self.knobs)
            if self.profiling is not None:
                self.profiling.after_fork()
        except Exception as error:
            self.recorder.fault("fork", error)


def let_in(handoff: Mapping[str, Any]) -> Session:
    """Start the session of a process that was launched by hotlap; called by the door."""
    global _current
    session = Session(
        Path(handoff["run_dir"]),
        handoff.get("start_dir") or os.getcwd(),
        handoff.get("faults", ()),
        handoff.get("disabled", ()),
    )
    if handoff.get("trial"):
        _prepare(session, handoff["trial"])
    elif handoff.get("knobs"):
        from hotlap.inject.conditions.settings import Settings

        session.knobs = Settings(session.recorder, session.patches, handoff["knobs"])
    session.begin()
    _current = session
    return session


def _prepare(session: Session, raw: Mapping[str, Any]) -> None:
    """Make what only a trial has; a plain run does not even load it."""
    from hotlap.inject.conditions.conductor import Conditions
    from hotlap.inject.conditions.profiling import Profiling
    from hotlap.values.trial import TrialPlan

    plan = TrialPlan.from_dict(raw)
    session.conditions = Conditions(session, plan)
    session.profiling = Profiling(session.recorder, plan)


def begin(run: Path, start_dir: str, start_ns: int) -> Session:
    """Start a session from inside, for the API; ``finish`` ends it."""
    global _current
    # Nobody listens to imports here, and what Dynamo traces must be in Python by then.
    known = all(name in sys.modules for name in dynamo_frames.MODULES)
    withheld = None if known else "torch.compile could come unseen"
    session = Session(run, start_dir, start_ns=start_ns, withheld=withheld)
    session.begin()
    _current = session
    return session


def finish(session: Session) -> None:
    """End a session that ``begin`` started: its record is complete, its patches are undone."""
    global _current
    session.end()
    if _current is session:
        _current = None


def current() -> Session | None:
    """Return the session of this process, if one was let in or begun."""
    return _current
