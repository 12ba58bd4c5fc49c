"""The kinds of windows. A new kind is one class in a file of its own and one line in the table.

A window over steps derives from ``Steps``: it is told when it may begin, when it begins and when
it has ended; what it measures the conductor counts for all of them. A window that happens between
two steps derives from ``Between`` and returns its result.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

from hotlap.inject.conditions import drain as draining
from hotlap.inject.conditions.deliveries import Deliveries, Source
from hotlap.inject.conditions.epoch_end import Cut
from hotlap.inject.conditions.operators import UnderProfiler
from hotlap.inject.conditions.replay import Replay, wait_for_rest
from hotlap.inject.conditions.storage import compare
from hotlap.probe.ledger import DATA_WAIT, WIDTH
from hotlap.probe.recorder import Recorder
from hotlap.sites.patches import Patches
from hotlap.sites.steering import Own
from hotlap.values.trial import WindowPlan, WindowResult

_SET_PTRACER: Final = 0x59616D61
_ANYBODY: Final = 2**64 - 1
_PATIENCE: Final = 12
"""Steps in which two batches of each training loader must have been seen for a replay to begin."""


@dataclass
class Stage:
    """What windows work with.

    run: the run's folder. used: gives the loaders that fed the latest steps; weights: how many
    batches came from each. steps: gives how many steps have ended.
    """

    recorder: Recorder
    patches: Patches
    own: Own
    deliveries: Deliveries
    cut: Cut
    replay: Replay
    run: Path
    used: Callable[[], list[Source]]
    weights: Callable[[list[Source]], list[int]]
    steps: Callable[[], int]


class Steps:
    """A window over steps of the training, as it stands."""

    def __init__(self, stage: Stage, plan: WindowPlan) -> None:
        self.stage = stage
        self.plan = plan

    def ready(self, waited: int) -> bool:
        """Tell at the end of a step whether the window can begin there.

        waited: for how many steps this was asked before. Raises LookupError, in words, when it
        never will.
        """
        del waited
        return True

    def lead(self) -> int:
        """Return how many steps at the beginning are not measured."""
        return 0

    def begin(self) -> None:
        """Make the condition. Between two steps; its time is left out of the accounts."""

    def end(self) -> tuple[str, ...]:
        """Undo the condition; return what limits its figures, in words. Also called on failure."""
        return ()


class Between:
    """A window between two steps; its time is left out of the accounts."""

    def __init__(self, stage: Stage, plan: WindowPlan) -> None:
        self.stage = stage
        self.plan = plan
        self.segments: list[tuple[int, int]] = []
        """Where in the window it was measured, if not all the time."""

    def run(self) -> WindowResult:
        """Make the condition, measure, undo it. Raises LookupError, in words, if it cannot."""
        raise NotImplementedError


class Replayed(Steps):
    """The training loaders give batches that they gave before."""

    def ready(self, waited: int) -> bool:
        """Wait for two batches of each loader that feeds the steps."""
        used = self.stage.used()
        if used and all(len(source.kept) >= 2 for source in used):
            return True
        for source in used:
            if source.unkeepable is not None:
                raise LookupError(f"its batches cannot be kept ({source.unkeepable})")
        if waited >= _PATIENCE or (not used and self.stage.steps() > _PATIENCE):
            raise LookupError(
                "no batch of a training loader was seen: the script has no torch DataLoader, or "
                "uses it in another thread"
                if not used
                else "too few batches of the training loader could be kept"
            )
        return False

    def lead(self) -> int:
        """Leave out the steps whose batches were fetched ahead."""
        return 2

    def begin(self) -> None:
        """Let the workers come to rest, then give out what was kept."""
        replay = self.stage.replay
        replay.notes.clear()
        self.stage.deliveries.keeping = False
        if not wait_for_rest(self.stage.used()):
            replay.notes.add("the loader's workers were still at work in it")
        replay.active = True

    def end(self) -> tuple[str, ...]:
        """Give the loader its place again."""
        replay, used = self.stage.replay, self.stage.used()
        replay.active = False
        notes = set(replay.notes)
        if any(source.in_place for source in used):
            notes.add("the script changes its batches in place: clones were given out")
        if len(used) > 1:
            notes.add(f"batches of {len(used)} loaders were replayed")
        shapes = max((len({kept.shape for kept in one.kept}) for one in used), default=0)
        if shapes > 1:
            notes.add(f"batches of {shapes} different shapes were replayed")
        return tuple(sorted(notes))


class Drained(Between):
    """The training loaders alone, at their own settings."""

    def run(self) -> WindowResult:
        """Take batches out of them."""
        return self._drained(lambda source: (draining.tap_of(source, self.stage.own), []))

    def _drained(self, tap_for: Callable[[Source], tuple[draining.Tap, list[str]]]) -> WindowResult:
        used = self.stage.used()
        if not used:
            raise LookupError("no batch of a training loader was seen: there is none to drain")
        notes: list[str] = []
        if len(used) > 1:
            notes.append(f"{len(used)} loaders were drained together, as the steps take from them")
        if not wait_for_rest(used):
            notes.append("the loader's workers had not filled its queue when it began")
        recorder = self.stage.recorder
        before = recorder.loaders.current
        recorder.loaders.current = used[0].known  # at 0 workers: whose batches these are
        taps: list[draining.Tap] = []
        try:
            with draining.chance_kept():
                for source in used:
                    tap, more = tap_for(source)
                    taps.append(tap)
                    notes += more
                found = draining.drain(
                    draining.Taps(taps, self.stage.weights(used)),
                    self.plan.steps,
                    self.plan.seconds,
                )
        finally:
            recorder.loaders.current = before
            for tap in taps:
                tap.shut_down()
            recorder.fetches.flush()
        return self._result(found, notes)

    def _result(self, found: draining.Drained, notes: list[str]) -> WindowResult:
        accounts = [0] * WIDTH
        accounts[DATA_WAIT] = sum(found.intervals)
        now = perf_counter_ns()
        self.segments = found.segments if len(found.segments) > 1 else []
        return WindowResult(
            kind=self.plan.kind,
            workers=self.plan.workers,
            begin_ns=found.begin_ns or now,
            end_ns=found.end_ns or now,
            steps=0,
            batches=found.batches,
            samples=found.samples,
            accounts=tuple(accounts),
            step_ns=draining.thinned(found.intervals),
            ended_by=found.ended_by,
            notes=(*notes, *found.notes),
        )


class OtherWorkers(Drained):
    """New loaders over the same data, with another number of workers."""

    def run(self) -> WindowResult:
        """Take batches out of them, and end their workers."""
        workers = self.plan.workers
        if workers is None:
            raise LookupError("the plan does not say how many workers")
        return self._drained(lambda source: draining.tap_with(source, self.stage.own, workers))


class FromStorage(Between):
    """Some samples of the loader that feeds most, cold and then warm."""

    def run(self) -> WindowResult:
        """Prepare them in this process; the files that they read are let go of before."""
        used = self.stage.used()
        if not used:
            raise LookupError("no batch of a training loader was seen")
        weights = self.stage.weights(used)
        source = used[weights.index(max(weights))]
        begin = perf_counter_ns()
        found = compare(source, self.plan.steps, self.plan.seconds)
        notes = [f"{found.stayed:.0%} of what was in memory stayed there"] if found.stayed else []
        return WindowResult(
            kind=self.plan.kind,
            workers=0,
            begin_ns=begin,
            end_ns=perf_counter_ns(),
            steps=0,
            batches=0,
            samples=found.cold.samples,
            accounts=(0,) * WIDTH,
            split=found.split(),
            ended_by="steps" if found.cold.samples >= self.plan.steps else "seconds",
            notes=tuple(notes),
        )


class Open(Steps):
    """The training as it stands; other processes of the same user may look at its stacks."""

    def begin(self) -> None:
        """Allow it, where the kernel's Yama module asks for that (prctl(2), PR_SET_PTRACER)."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SET_PTRACER, ctypes.c_ulong(_ANYBODY), 0, 0, 0)

    def end(self) -> tuple[str, ...]:
        """Forbid it again."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SET_PTRACER, 0, 0, 0, 0)
        return ()


class EpochEnds(Steps):
    """The epoch ends at once; then come the first steps of the next."""

    def ready(self, waited: int) -> bool:
        """Wait until a loader is known to feed the steps."""
        if self.stage.used():
            return True
        if waited >= _PATIENCE:
            raise LookupError("no batch of a training loader was seen: it has no end to bring on")
        return False

    def begin(self) -> None:
        """Have the training loaders end."""
        self.stage.cut.begin(self.plan.seconds)

    def end(self) -> tuple[str, ...]:
        """Let them be."""
        self.stage.cut.end()
        return () if self.stage.cut.has_cut else ("no loader was asked for another batch",)


class Profiled(Steps):
    """The training as it stands, under torch's profiler."""

    def __init__(self, stage: Stage, plan: WindowPlan) -> None:
        super().__init__(stage, plan)
        self._profiler = UnderProfiler(stage.recorder)
        self._steps = 0

    def begin(self) -> None:
        """Start the profiler."""
        self._steps = self.stage.steps()
        self._profiler.begin()

    def end(self) -> tuple[str, ...]:
        """Stop it; its table is written beside the window's result."""
        return self._profiler.end(self.stage.steps() - self._steps)


STEPS: dict[str, type[Steps]] = {
    "warm_up": Steps,
    "baseline": Steps,
    "replay": Replayed,
    "operators": Profiled,
    "epoch_end": EpochEnds,
    "native": Open,
}
BETWEEN: dict[str, type[Between]] = {
    "drain": Drained,
    "workers": OtherWorkers,
    "storage": FromStorage,
}


def pid() -> int:
    """Return the process's number; a forked child has another."""
    return os.getpid()


def words_of(error: BaseException) -> str:
    """Say in one line what went wrong."""
    text = " ".join(str(error).split())
    return text[:300] if isinstance(error, LookupError) else f"{type(error).__name__}: {text[:300]}"


def nothing_measured(plan: WindowPlan, because: str, at_ns: int, notes: Any = ()) -> WindowResult:
    """Return the result of a window that did not come about."""
    return WindowResult(
        kind=plan.kind,
        workers=plan.workers,
        begin_ns=at_ns,
        end_ns=at_ns,
        steps=0,
        batches=0,
        samples=None,
        accounts=(0,) * WIDTH,
        ended_by=f"failed: {because}",
        notes=tuple(notes),
    )
