"""Goes from window to window of a trial, at the ends of steps, in the training thread.

The first step, which pays for what happens once, lies before all windows. A failure of ours ends
the window with words, never the training.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from time import monotonic_ns, perf_counter_ns
from typing import Any, Final

from hotlap.inject.conditions import windows
from hotlap.inject.conditions.deliveries import LOADER, Deliveries, Feeding, known_of
from hotlap.inject.conditions.draws import Draws
from hotlap.inject.conditions.epoch_end import Cut
from hotlap.inject.conditions.gradients import Gradients
from hotlap.inject.conditions.measure import Measure
from hotlap.inject.conditions.ranks import Ranks, ranks_here
from hotlap.inject.conditions.replay import Replay
from hotlap.inject.conditions.settings import Settings
from hotlap.inject.conditions.stop import Stop
from hotlap.inject.conditions.switches import Switches
from hotlap.inject.conditions.trace import Trace
from hotlap.inject.conditions.unused_rows import UnusedRows
from hotlap.inject.conditions.written import facts_frame, result_frame
from hotlap.probe.cycle import Cycle
from hotlap.probe.journal import Raw
from hotlap.probe.timeline import BY_BACKWARD, BY_OPTIMIZER
from hotlap.sites.steering import Own, steer_loaders
from hotlap.values.trial import TrialPlan, WindowPlan, WindowResult

_NS: Final = 1_000_000_000
_FETCHES_NS: Final = 20_000_000
"""In a trial the loaders' sums are written this often: what belongs to a window is told by time."""
_KNOWN_STEPS: Final = 3
"""By then every optimizer has stepped: without a loader the first step ends at a backward pass."""


class Conditions:
    """The trial of one process.

    session: the ``inject.session.Session`` that it belongs to. plan: what happens.
    """

    def __init__(self, session: Any, plan: TrialPlan) -> None:
        self.plan = plan
        self._session = session
        recorder = self._recorder = session.recorder
        self._own: Own | None = None
        self._switches = Switches()
        self._gradients = Gradients(recorder.places, recorder.ledger.mine, self._roots)
        self._unused = UnusedRows(recorder.places, recorder.ledger.mine, self._roots)
        self._settings = Settings(recorder, session.patches, plan.settings)
        self.trace = Trace(recorder, plan, self._roots)
        self._start_over()

    def _start_over(self) -> None:
        self._pid = windows.pid()
        self.deliveries = Deliveries()
        self.cut = Cut()
        self.stop = Stop(self._leave)
        self.trace.start_over()
        self._cycle = Cycle()
        self._ranks: Ranks | None = None
        self._index = -1
        self._steps = 0
        self._window: windows.Steps | None = None
        self._measure: Measure | None = None
        self._lead = 0
        self._waited = 0
        self._after_loaders = False
        self.feeding = Feeding(self.deliveries)
        self._failed = False
        if self._own is not None:
            self._set_stage(self._own)

    def _set_stage(self, own: Own) -> None:
        self.replay = Replay(own, self.deliveries)
        self.stage = windows.Stage(
            self._recorder,
            self._session.patches,
            own,
            self.deliveries,
            self.cut,
            self.replay,
            self._recorder.run,
            lambda: self.feeding.used,
            self.feeding.weights,
            lambda: self._steps,
        )

    def attach(self) -> None:
        """Listen to ticks and stand below the loaders' observers; before sites are installed.

        Never raises: where that fails this is a plain run, and its record says so.
        """
        try:
            self._attach()
        except Exception as error:
            self._failed = True
            self._recorder.fault("conditions", error)

    def _attach(self) -> None:
        self._settings.apply()
        self._own = steer_loaders(
            self._session.patches, self._before_batch, self._after_batch, self._iterator
        )
        self._set_stage(self._own)
        self._switches.attach(self._session.hub)
        self._gradients.attach(self._session.hub)
        self.trace.attach(self._session.hub)
        Draws(self._recorder).attach(self._session.hub)
        self._session.hub.subscribe("exhausted", self._exhausted)
        if self.plan.settings:
            # A worker's proof goes into its file, which it has from its second batch on.
            self._session.hub.subscribe("fetch", self._fetch_begins)
        self._recorder.fetches.grain_ns = _FETCHES_NS
        journal = self._recorder.journal
        kept: Callable[[Raw], None] = journal.tick

        def tick(raw: Raw) -> None:
            kept(raw)
            self._tick(raw)

        # On the object, not the class: it lasts as long as this process's journal.
        vars(journal)["tick"] = tick

    # -- below the loaders' observers ------------------------------------------------------------

    def _before_batch(self, iterator: Any) -> Callable[[], Any] | None:
        if self._pid != windows.pid() or self._failed or not self._recorder.ledger.mine():
            return None  # an exit raised in another thread would end that thread alone
        if self.cut.is_over():
            self.stop.wanted = True
        self._stop_if_wanted()
        try:
            known = known_of(iterator)
            if known is None or not known.trains:
                return None
            return self.cut.gives() or self.replay.source_of(iterator, known)
        except Exception as error:
            self._fault(error)
            return None

    def _after_batch(self, iterator: Any, batch: Any) -> None:
        if self._pid != windows.pid() or self._failed:
            return
        try:
            stretch = self._recorder.timeline.stretch
            if stretch is None or not stretch.explicit:
                self.trace.delivered(iterator, batch)
                self.deliveries.delivered(iterator, batch, self._steps > 0)
        except Exception as error:
            self._fault(error)

    def _iterator(self, loader: Any, begin: Callable[[Any], Any]) -> Any:
        if self._pid != windows.pid() or self._failed:
            return begin(loader)
        known = None
        try:
            held = self._recorder.loaders.known(loader)
            known = held if held is not None and held.trains else None
            if known is not None:
                self.cut.begun()
        except Exception as error:
            self._fault(error)
        iterator = self.replay.begun(loader, begin, known)
        if hasattr(iterator, "__dict__"):
            # Held, as `for batch in DataLoader(...)` holds it nowhere else; not where the loader
            # holds its iterator: in a ring both would outlive the script's last use, and workers.
            held = not getattr(loader, "persistent_workers", False)
            iterator.__dict__[LOADER] = (lambda: loader) if held else weakref.ref(loader)
        return iterator

    def _exhausted(self, iterator: Any) -> int:
        known = known_of(iterator)
        if self._pid == windows.pid() and known is not None and known.trains:
            source = self.deliveries.of(known)
            if source.iterator is not None and source.iterator() is iterator:
                source.exhausted(iterator)
        return 0

    def _fetch_begins(self, _subject: Any) -> int:
        if self._recorder.worker_file is not None:
            self._settings.write()
        return 0

    # -- at the ends of steps --------------------------------------------------------------------

    def _tick(self, raw: Raw) -> None:
        if self._pid != windows.pid():
            self._start_over()  # a forked child that trains: a trial of its own
        if self._failed:
            self._stop_if_wanted()
            return
        if raw[1] == BY_OPTIMIZER and not self._cycle.closes(raw[2]):
            return
        if raw[1] == BY_BACKWARD and self._switches.is_within_a_step():
            self._stop_if_wanted()
            return
        try:
            self._step_ended(raw)
        except Exception as error:
            self._fault(error)
        self._recorder.ledger.skip()
        self._stop_if_wanted()

    def _stop_if_wanted(self) -> None:
        if self.stop.wanted:
            self.stop.at_hook()

    def _step_ended(self, raw: Raw) -> None:
        self._steps += 1
        if self._steps == 1:
            self._settings.first_step_ended()
            self.deliveries.first_step_ended()
        if self._steps in (1, _KNOWN_STEPS):
            self._write_facts()
        self._gradients.stepped(self._steps)
        if self.plan.sample_hz:  # these trials are watched, and not compared with others
            self._unused.stepped(self._steps)
        self.deliveries.step_ended()
        self.feeding.learn(self._steps)
        if self._index < 0:
            self._next(raw)
        elif self._window is not None:
            self._in_window(raw, self._window)
        if self.plan.trace is not None and self._ended("trace", self.trace.stepped()):
            self.trace.finish("seconds")
        if self.trace.is_over:
            self.stop.wanted = True
        if self.plan.stop_after_s is not None:
            age = monotonic_ns() - self._recorder.hello["start_ns"]
            over = age >= self.plan.stop_after_s * _NS
            if self._ended("stop", over):
                self._end_window("run ended")
                self.stop.wanted = True

    def _in_window(self, raw: Raw, window: windows.Steps) -> None:
        if self._measure is None:
            self._approach(raw, window)
            return
        self._measure.step(raw)
        plan = window.plan
        if len(self._measure.step_ns) >= plan.steps:
            self._end_window("steps")
            self._next(raw)
            return
        over = raw[0] - self._measure.begin_ns >= plan.seconds * _NS
        if self._ended(f"window{self._index}", over):
            self._end_window("seconds")
            self._next(raw)

    def _ended(self, what: str, over: bool) -> bool:
        """Tell whether a time that is over here is over for all ranks at this step."""
        if self._ranks is None:
            # Not before the first step: the script may make its process group late.
            self._ranks = ranks_here(self._recorder.run, os.environ)
        measured = None if self._ranks.alone else self._measure
        typical = None if measured is None else measured.typical_ns()
        return self._ranks.ended(what, self._steps, over, typical or _NS)

    def _approach(self, raw: Raw, window: windows.Steps) -> None:
        """Before a window is measured: wait until it can begin, then leave out its lead."""
        if self._waited >= 0:
            try:
                if not window.ready(self._waited):
                    self._waited += 1
                    return
                window.begin()
            except Exception as error:
                self._give_up(window, error)
                self._next(raw)
                return
            self._waited = -1
            self._lead = window.lead()
            if self._after_loaders:
                # The queue is full, as it is not in the middle of a training.
                self._lead += max((one.queued() for one in self.feeding.used), default=0)
            self._after_loaders = window.plan.kind == "replay"
        else:
            self._lead -= 1
        if self._lead <= 0:
            self._recorder.fetches.flush()
            self._measure = Measure(perf_counter_ns(), raw, self.deliveries, window.plan)

    def _give_up(self, window: Any, error: Exception) -> None:
        self._window = self._measure = None
        notes: tuple[str, ...] = ()
        if isinstance(window, windows.Steps):
            notes = window.end()
        words = windows.words_of(error)
        self._write(windows.nothing_measured(window.plan, words, perf_counter_ns(), notes))

    def _end_window(self, ended_by: str) -> None:
        window, measure = self._window, self._measure
        self._window = self._measure = None
        if window is None:
            return
        notes = window.end()
        self._recorder.fetches.flush()
        if measure is None:
            because = "the run ended before it could begin"
            self._write(windows.nothing_measured(window.plan, because, perf_counter_ns(), notes))
            return
        self._write(measure.result(window.plan, ended_by, notes))

    def _next(self, raw: Raw) -> None:
        """Go on to the next window; those between two steps are gone through at once."""
        while True:
            self._index += 1
            rest = self.plan.windows[self._index :]
            if not any(one.kind == "replay" for one in rest):
                self.deliveries.forget()
            if not rest:
                if self.plan.windows:
                    self.deliveries.ask_length()
                    self.stop.wanted = True
                return
            plan = rest[0]
            if self._begin_steps(plan, raw):
                return
            self._run_between(plan)

    def _begin_steps(self, plan: WindowPlan, raw: Raw) -> bool:
        kind = windows.STEPS.get(plan.kind)
        if kind is None:
            return False
        if any(one.kind == "replay" for one in self.plan.windows[self._index :]):
            self.deliveries.keeping = True
        self._window = kind(self.stage, plan)
        self._measure = None
        self._waited = 0
        self._approach(raw, self._window)
        return self._window is not None

    def _run_between(self, plan: WindowPlan) -> None:
        kind = windows.BETWEEN.get(plan.kind)
        if kind is None:
            if plan.kind not in windows.STEPS:
                words = f"this hotlap has no windows of kind {plan.kind!r}"
                self._write(windows.nothing_measured(plan, words, perf_counter_ns()))
            return
        window = kind(self.stage, plan)
        self._after_loaders = True
        try:
            self._write(window.run(), window.segments)
        except Exception as error:
            self._give_up(window, error)

    # -- records ---------------------------------------------------------------------------------

    def _write(self, result: WindowResult, segments: Sequence[tuple[int, int]] = ()) -> None:
        """Write a result at once. segments: where in it was measured, if not all the time."""
        self._write_facts()
        recording = self._recorder.recording
        recording.add(result_frame(result, segments, self.feeding.used))
        recording.flush()

    def _write_facts(self) -> None:
        self._settings.write()
        if self._steps:
            found = {
                **self._switches.facts(self._roots()),
                **self._gradients.facts(),
                **self._unused.facts(),
                **self.deliveries.facts(),
            }
            self._recorder.recording.add(facts_frame(found, self._recorder.places))

    def _roots(self) -> list[Any]:
        """Return the modules that are trained, as far as they are known."""
        found = self._recorder.timeline.roots.values()
        return [root for one in found if (root := one()) is not None]

    def _fault(self, error: BaseException) -> None:
        """Our own failure: the window ends with words, and so does the trial at the next step."""
        self._failed = True
        self.stop.wanted = bool(self.plan.windows)
        self.replay.active = False
        self._recorder.fault("conditions", error)
        window, self._window = self._window, None
        if window is not None:
            words = windows.words_of(error)
            self._write(windows.nothing_measured(window.plan, words, perf_counter_ns()))

    def end(self) -> None:
        """The process ends: write the window that is open. May be called twice."""
        if self._pid == windows.pid() and not self._failed:
            self._end_window("run ended")
            self.trace.finish("run ended")
            self._write_facts()
        self._gradients.finish()
        self._unused.finish()

    def _leave(self) -> None:
        self._session.end()
