"""When the sampler runs in which process, and where what was seen is written.

It runs in the process that the command started, from the moment hotlap is let in; in a loader's
worker from its first batch on; in another child only if that trains. A trainer's table is one
file that is replaced, so its size is bounded and it can be read whenever the process dies. A
worker appends its tables to its own file; the last one counts.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import sys
from _thread import get_ident
from time import perf_counter_ns
from types import ModuleType
from typing import Any, Final

from hotlap.fast.choice import hooks
from hotlap.inject.conditions.profile import Table, Waiting
from hotlap.inject.conditions.sampler import Sampler, Stack, Stacks
from hotlap.inject.conditions.threads_beside import ThreadsBeside
from hotlap.probe.collector import Collector
from hotlap.probe.places import Places
from hotlap.probe.recorder import Recorder
from hotlap.probe.sample_clock import SampleClock
from hotlap.runs import frames, layout
from hotlap.runs.recording import Recording
from hotlap.sites.hub import Hub
from hotlap.values.phase import ACCOUNTS
from hotlap.values.trial import TrialPlan

_EVERY_NS: Final = 5_000_000_000
_LONGEST_NS: Final = 60_000_000_000
_MOST_FILES: Final = 200
_WORKER_LIMIT: Final = 16 << 20
_LAUNCHERS: Final = frozenset(("torchrun", "accelerate", "deepspeed"))
_LAUNCHING: Final = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands")
IDLE: Final = "idle"


class Profiling:
    """The profile of one process, its collector's time and its samples' times.

    Call ``attach`` before the sites are installed, ``begin`` after, ``after_fork`` in a forked
    child; at the end ``stop``, then close the recorder, then ``close``.
    """

    def __init__(self, recorder: Recorder, plan: TrialPlan) -> None:
        self._recorder = recorder
        self._plan = plan
        self._clock = SampleClock() if plan.clock_samples else None
        self._collector = Collector(self._phase) if may_listen(plan) else None
        self._over = False
        self._reset()

    def _reset(self) -> None:
        self._worker: bool | None = None
        self._finalized = False
        self._thread = 0
        self._doing = IDLE
        self._begun_ns = perf_counter_ns()
        self._next_write_ns = self._begun_ns + _EVERY_NS // 2
        self._said = False
        self._lost = False
        self._stacks = Stacks(self._recorder.places)
        self._beside = ThreadsBeside(self._recorder.places)
        self._table = Table(self._stacks)
        self._waiting = self._make_waiting()
        self._sampler: Sampler | None = None
        if self._plan.sample_hz:
            self._sampler = Sampler(
                self._plan.sample_hz,
                self._stacks,
                self._target,
                self._look,
                self._pause,
                self._plan.sample_switch_s,
            )
        self._recorder.journal.status.append(self._status)

    def _make_waiting(self) -> Waiting:
        recorder = self._recorder
        return Waiting(self._table, recorder.ledger, recorder.timeline, recorder.journal)

    def attach(self, hub: Hub) -> None:
        """Subscribe to what tells a worker and what it does."""
        hub.subscribe("fetch", self.fetch_begins, self.fetch_ended)
        hub.subscribe("collate", self.collate_begins, self.collate_ended)
        if self._clock is not None:
            self._clock.attach(hub)

    def begin(self) -> None:
        """Begin to look, if this is a process that is not known to be another's child."""
        if self._collector is not None:
            self._collector.attach()
        if self._sampler is not None:
            os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork_here)
            if multiprocessing.parent_process() is None and not _launches(self._recorder.hello):
                self._sampler.start()

    # -- what the sites tell -------------------------------------------------------------------

    def fetch_begins(self, _: Any) -> str:
        """A batch is being made: the first one tells whether this is a worker."""
        if self._worker is None:
            info = sys.modules["torch"].utils.data.get_worker_info()
            self._worker = info is not None
            if self._worker:
                self._become_worker()
        before, self._doing = self._doing, "fetch"
        return before

    def fetch_ended(self, before: str, _: Any) -> None:
        """It is made."""
        self._doing = before
        if self._worker and self._sampler is None:
            self._pause()

    def collate_begins(self, _: Any) -> str:
        """Its samples are put together."""
        before, self._doing = self._doing, "collate"
        return before

    def collate_ended(self, before: str, _: Any) -> None:
        """They are."""
        self._doing = before

    def _become_worker(self) -> None:
        self._thread = get_ident()
        self._finalize(-90)
        if self._sampler is not None:
            self._sampler.stop()
            self._table = Table(self._stacks)
            self._table.begin_ns = perf_counter_ns()
            self._sampler.start()

    def _finalize(self, priority: int) -> None:
        # Forked children run no atexit handlers, but multiprocessing's finalizers.
        self._finalized = True
        multiprocessing.util.Finalize(None, self._end_child, exitpriority=priority)

    def _end_child(self) -> None:
        self.stop()
        self.close()

    # -- in the sampler's thread -----------------------------------------------------------------

    def _target(self) -> int:
        return self._thread or self._recorder.ledger.thread

    def _phase(self) -> str:
        recorder = self._recorder
        if self._worker:
            return self._doing
        if not recorder.timeline.ticks:
            return "start_up"
        return ACCOUNTS[recorder.ledger.current] if recorder.ledger.mine() else "other_threads"

    def _look(self, now: int, stack: Stack, ns: int, spent: tuple[int, int] | None) -> None:
        if self._worker:
            self._table.add(self._doing, now, stack, ns, spent)
        else:
            self._waiting.look(now, stack, ns, spent)

    def _pause(self) -> None:
        if not self._worker and self._recorder.timeline.ticks:
            self._beside.look(self._target())
        now = perf_counter_ns()
        if now >= self._next_write_ns:
            age = now - self._begun_ns
            self._next_write_ns = now + min(max(_EVERY_NS, age // 10), _LONGEST_NS)
            self._write(closed=False)

    # -- writing ---------------------------------------------------------------------------------

    def _status(self) -> None:
        """Called now and then in the training thread, once there are steps."""
        recorder, sampler = self._recorder, self._sampler
        if self._over or self._worker:
            return
        if sampler is not None and not sampler.running and recorder.timeline.ticks:
            sampler.start()  # another's child that trains
        if sampler is not None and sampler.failure is not None and not self._said:
            self._said = True
            recorder.fault("sampler", sampler.failure)
        if multiprocessing.parent_process() is not None and not self._finalized:
            self._finalize(-110)  # after the recorder's own
        for frame in self._small_frames():
            recorder.recording.add(frame)

    def _small_frames(self) -> list[bytes]:
        identity = {"pid": os.getpid(), "begin_ns": self._begun_ns, "worker": bool(self._worker)}
        made = []
        if self._collector is not None:
            made.append(frames.encode_json("gcol", {**identity, **self._collector.to_dict()}))
        if self._clock is not None and self._clock.count:
            made.append(frames.encode_json("smpl", {**identity, **self._clock.to_dict()}))
        return made

    def _profile_frame(self, closed: bool) -> bytes | None:
        sampler = self._sampler
        if sampler is None or not sampler.looks:
            return None
        table = self._table if self._worker else self._waiting.whole(closed)
        content = {
            "pid": os.getpid(),
            "role": "worker" if self._worker else "trainer",
            "began_ns": self._begun_ns,
            "ended_ns": perf_counter_ns(),
            "files": [] if self._worker else user_files(self._recorder.places),
            "hz": sampler.hz,
            "looks": sampler.looks,
            "late": sampler.late,
            "late_ns": sampler.late_ns,
            "cost_ns": sampler.cost_ns,
            "threads": self._beside.to_list(),
            **table.to_dict(self._recorder.places.shown),
        }
        return frames.encode_json("prof", content)

    def _write(self, closed: bool) -> None:
        """Write everything so far; what cannot be written once is not tried again."""
        frame = self._profile_frame(closed)
        if self._worker:
            path = self._recorder.worker_file
            if path is not None:
                recording = Recording(path, "worker", _WORKER_LIMIT)
                for one in (frame, *self._small_frames()):
                    if one is not None:
                        recording.add(one)
                recording.flush()
        elif frame is not None and not self._lost:
            try:
                self._replace(frame)
            except OSError:
                self._lost = True

    def _replace(self, frame: bytes) -> None:
        folder = self._recorder.recording.path.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / layout.PROFILE_FILE
        fresh = path.with_suffix(".new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with memoryview(frames.header("profile") + frame) as left:
                at = 0
                while at < len(left):
                    at += os.write(handle, left[at:])
        finally:
            os.close(handle)
        os.replace(fresh, path)

    # -- life ------------------------------------------------------------------------------------

    def _before_fork(self) -> None:
        # A thread that runs during a fork is what Python 3.12 warns of; so it does not.
        sampler = self._sampler
        self._paused = not self._over and sampler is not None and sampler.running
        if self._paused and sampler is not None:
            sampler.stop()

    _paused = False

    def _after_fork_here(self) -> None:
        if self._paused and self._sampler is not None:
            self._sampler.start()

    def after_fork(self) -> None:
        """In a forked child, after the recorder's: nothing was seen yet, and nobody looks."""
        if self._over:
            return
        if self._sampler is not None:
            self._sampler.forked()
        if self._clock is not None:
            self._clock.reset()
        if self._collector is not None:
            self._collector.reset()
        self._reset()

    def stop(self) -> None:
        """End the sampler's thread. Never raises."""
        try:
            if self._sampler is not None:
                self._sampler.stop()
        except Exception as error:
            self._recorder.fault("sampler", error)

    def close(self) -> None:
        """Write what was seen in the end; further calls do nothing. Never raises."""
        if self._over:
            return
        self._over = True
        try:
            if self._collector is not None:
                self._collector.detach()
            if self._worker or self._recorder.timeline.ticks or _is_first():
                self._write(closed=True)
        except Exception as error:
            self._recorder.fault("sampler", error)


def may_listen(plan: TrialPlan) -> bool:
    """Tell whether a function of ours may be called in the middle of a garbage collection.

    In Python 3.11 collections begin where a frame is made, the interpreter may be given away in
    what they call, and a walk over frames that goes on then ends in freed memory. The compiled
    ``stacks`` has none that could go on.
    """
    walks_by_parts = bool(plan.sample_hz) and hooks is None
    return not (walks_by_parts and sys.version_info[:2] == (3, 11))


def user_files(places: Places) -> list[str]:
    """Return the source files of the user's modules that are loaded, the entry script first.

    A module that loads itself when it is looked at is not looked at.
    """
    found: dict[str, None] = {}
    loaded = dict(sys.modules)
    for module in (loaded.get("__main__"), *loaded.values()):
        if issubclass(type(module), ModuleType):
            file = object.__getattribute__(module, "__dict__").get("__file__")
            if type(file) is str and file.endswith(".py") and places.is_users(file):
                found[places.shown(file)] = None
    return list(found)[:_MOST_FILES]


def _is_first() -> bool:
    return multiprocessing.parent_process() is None


def _launches(hello: dict[str, Any]) -> bool:
    """Tell whether this process only starts the ranks of a training."""
    if hello["rank"] is not None:
        return False
    words = [str(word) for word in hello["argv"][:6]]
    return any(
        os.path.basename(word) in _LAUNCHERS or word.startswith(_LAUNCHING) for word in words
    )
