"""The schedule of a diagnosis: which trials are run, in which order, within the budget.

1. ``watch``: the command as it stands, sampled; a short one to its own end.
2. ``ceilings``: baseline, replayed batches, baseline again, the loader alone, other workers.
3. ``operators``: a few steps under torch's profiler, where the model takes the time.
4. ``epoch end``: what comes after an epoch that is longer than what was watched.
5. What-ifs: single changes that would settle a suspicion, with references between them.
6. ``native stacks``: which functions of C run below the lines, where py-spy is at hand.

Whatever fails becomes words in ``Facts.not_measured``; Ctrl-C ends the schedule, and what is
known by then is returned.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hotlap.errors import HotlapError, NotMeasurable
from hotlap.experiment import plans, stored
from hotlap.experiment.epoch_end import with_epoch_end
from hotlap.experiment.late import Late
from hotlap.experiment.native_stacks import NativeStacks, with_native_stacks
from hotlap.experiment.noise import with_noise
from hotlap.experiment.parts import with_ceilings, with_operators, without_ceilings
from hotlap.experiment.source import with_source
from hotlap.experiment.trials import Lab, Trial, absence_of, why_nobody
from hotlap.experiment.watched import start_up_s, trainer, watched
from hotlap.experiment.what_ifs import is_doubtful, what_if
from hotlap.experiment.windows import results
from hotlap.values.facts import Facts, Missing
from hotlap.values.record import Process
from hotlap.values.trial import TrialPlan

Tried = dict[tuple[str, Any], list[Trial]]
"""The trials of each change, by its name and value."""

FACTS_FILE: Final = "facts.json"
DEFAULT_WINDOWS_S: Final = 60.0
DEFAULT_STARTS: Final = 3
_WATCH_SHARE: Final = 0.4
_END_SHARE: Final = 0.2
_LONGEST_START_S: Final = 1800.0
_MOST_CHANGES: Final = 4
_OVERDRAFT: Final = 0.1
_SPENT: Final = "the budget is spent; --budget SECONDS gives more"

Wishes = Callable[[Facts], tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class Ask:
    """What the user asked for.

    budget_s: wall time of the whole diagnosis; None for three start-ups and a minute.
    steps: measured steps per window; None for as many as fit. horizon: steps of a whole run.
    most_s: wall time that the machine is ours at most (a batch system's limit); None for ever.
    native: look for functions of C below the lines, where that is possible.
    """

    budget_s: float | None = None
    steps: int | None = None
    horizon: int | None = None
    most_s: float | None = None
    native: bool = True

    @property
    def windows_s(self) -> float:
        """Return the wall time that the windows of all trials share."""
        return min(self.budget_s or DEFAULT_WINDOWS_S, self.most_s or math.inf)


def measure(lab: Lab, ask: Ask, wishes: Wishes) -> Facts:
    """Run the trials of a diagnosis and return what they found out.

    wishes: says which changes would settle what the facts only suggest.
    The facts are also written to the diagnosis' own folder, again after each trial.
    Where nobody trained, they have no steps and say why. Raises NotMeasurable when there is not
    even a record; NotContained and WrongUse as ``launch.trial.run_trial``; KeyboardInterrupt when
    Ctrl-C came before anything was known.
    """
    schedule = _Schedule(lab, ask, wishes)
    try:
        return schedule.run()
    finally:
        lab.close()


@dataclass
class _Schedule:
    lab: Lab
    ask: Ask
    wishes: Wishes
    begun_s: float = field(default_factory=lambda: time.monotonic())
    facts: Facts | None = None
    start_s: float = 0.0
    process: Process | None = None
    missing: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_interrupted(self) -> bool:
        return self.lab.is_interrupted

    def run(self) -> Facts:
        try:
            has_steps = self._watch()
            for part in (
                self._ceilings,
                self._operators,
                self._epoch_end,
                self._changes,
                self._native_stacks,
            ):
                if has_steps and not self.is_interrupted:
                    part()
        except KeyboardInterrupt:
            self.lab.is_interrupted = True
        if self.facts is None:
            raise KeyboardInterrupt  # nothing is known yet
        if self.is_interrupted:
            self._interrupted(self.facts)
        return self._keep()

    def _interrupted(self, facts: Facts) -> None:
        """Say of what was not tried that Ctrl-C came first."""
        because = "Ctrl-C ended the diagnosis"
        self._miss("the rest of the experiments", because)
        done = {one.name for one in self.lab.done if one.is_sound}
        if "ceilings" not in done:
            facts = without_ceilings(facts, because)
        if "operators" not in done:
            facts = replace(facts, operators=Missing(because))
        self.facts = facts

    # -- the trials ------------------------------------------------------------------------------

    def _watch(self) -> bool:
        """Watch the training; return whether there was one."""
        seconds = _WATCH_SHARE * self.ask.windows_s
        limit_s = self.ask.budget_s or self.ask.most_s or _LONGEST_START_S + 2 * seconds
        late = Late(seconds)
        trial = self._trial(
            "watch",
            plans.watch_plan(seconds),
            limit_s,
            says="the training as it stands",
            about_s=seconds,
            on_poll=late.is_over,
        )
        ended = [one.ended_by for one in results(trial)]
        stopped = any(one in ("seconds", "steps") for one in ended) or trial.ended.by != "itself"
        self.facts = watched(trial, stopped, self.ask.horizon)
        if self.facts is None and not self.is_interrupted:
            raise NotMeasurable(f"nothing could be measured: {absence_of(trial)}")
        if self.facts is None or not any(one.step.steps for one in self.facts.run.trainers):
            self._miss("the training", why_nobody(trial))
            return False
        if not trial.is_sound and not self.is_interrupted:
            self._miss("the end of the watched trial", trial.why_not())
        if stopped and trial.is_sound:
            self._miss(
                "what comes later in the run",
                f"the training was watched for {seconds:.0f} s of its steps; --budget gives more",
            )
        if trial.record is not None:
            self.start_s = start_up_s(trial.record) or 0.0
            self.process = trainer(trial.record)
            self.facts = with_source(self.facts, self.lab.start, self.process)
        self.facts = with_noise(self.facts, ())
        self._keep()
        return True

    def _ceilings(self) -> None:
        """Measure the parts alone; in a run with few steps at least the loader."""
        facts = self._known()
        given = self._lengths(0.2, 3)
        if isinstance(given, plans.Lengths):
            plan = plans.ceilings_plan(facts, given)
        elif plans.training_loader(facts) is not None and self._left_s() > self.start_s:
            plan = plans.loader_plan(facts)
        else:
            self.facts = without_ceilings(facts, given)
            return
        trial = self._try("ceilings", plan, "each part alone")
        if isinstance(trial, str):
            self.facts = without_ceilings(facts, trial)
            return
        self.facts = with_noise(with_ceilings(facts, trial), results(trial))
        if isinstance(given, str):
            self.facts = replace(self._known(), compute_per_s=Missing(given))
        self._keep()

    def _epoch_end(self) -> None:
        """See what an epoch's end brings, where the watched trial did not come to one."""
        facts = self._known()
        steps = plans.unseen_epoch(facts)
        if steps is None:
            return
        seconds = min(_END_SHARE * self.ask.windows_s, self._left_s() - 1.2 * self.start_s)
        trial: Trial | str = _SPENT
        if seconds > 1.0:
            trial = self._try("epoch end", plans.epoch_end_plan(seconds), "the end of an epoch")
        self.facts = with_epoch_end(facts, steps, trial)
        if isinstance(self.facts.epoch_end, Missing):
            self._miss("epoch_end", self.facts.epoch_end.because)
        self._keep()

    def _operators(self) -> None:
        """Look at a few steps by operator, where the model takes the time."""
        facts = self._known()
        if not plans.wants_operators(facts):
            because = "the input takes more of the steps than the model does"
            self.facts = replace(facts, operators=Missing(because))
            return
        given = self._lengths(0.1, 1)
        trial: Trial | str = given if isinstance(given, str) else ""
        if isinstance(given, plans.Lengths):
            trial = self._try("operators", plans.operators_plan(given), "a few steps by operator")
        if isinstance(trial, str):
            self.facts = replace(facts, operators=Missing(trial))
            return
        self.facts = with_source(with_operators(facts, trial), self.lab.start, self.process)
        self._keep()

    def _changes(self) -> None:
        """Try changes one by one; the unchanged command stands before them and after them."""
        wanted = self.wishes(self._known())[:_MOST_CHANGES]
        if not wanted:
            return
        given = self._lengths(0.1, 1)
        if isinstance(given, str):
            self._miss("changes that would settle a suspicion", given)
            return
        tried: Tried = {}
        for change, value in wanted:
            name = f"{change} = {value}"
            if self._left_s() < self.start_s and tried:
                self._miss(f"the change {name}", _SPENT)
                continue
            plan = plans.changed_plan(given, change, value)
            trial = self._try(f"change {name}", plan, name)
            if self.is_interrupted:
                break
            if isinstance(trial, str):
                self._miss(f"the change {name}", trial)
                continue
            tried[change, value] = [trial]
            self._compare(tried)
        if tried and not self.is_interrupted and self._is_worth_a_reference():
            self._try("reference", plans.changed_plan(given), "unchanged, once more")
            self._compare(tried)
            self._again(tried, given)

    def _again(self, tried: Tried, given: plans.Lengths) -> None:
        """Try once more what helped a little: two runs of one command may differ by as much."""
        for one in filter(is_doubtful, self._known().what_ifs):
            if self.is_interrupted or not self._is_worth_a_reference():
                return
            plan = plans.changed_plan(given, one.change, one.value)
            trial = self._try(f"change {one.change} = {one.value}, again", plan, "once more")
            if not isinstance(trial, str):
                tried[one.change, one.value].append(trial)
                self._compare(tried)

    def _native_stacks(self) -> None:
        """See which native functions run below the user's lines."""
        facts = self._known()
        if not self.ask.native or not plans.wants_native(facts):
            return
        sampling = NativeStacks(self.lab.folder)
        trial: Trial | str = sampling.why_not() or ""
        if not trial:
            given = self._lengths(0.1, 1)
            trial = given if isinstance(given, str) else ""
            if isinstance(given, plans.Lengths):
                plan = plans.native_plan(given)
                with sampling:
                    trial = self._try("native stacks", plan, "native functions", sampling.look)
        self.facts = with_native_stacks(facts, self.lab.start, trial, sampling)
        if isinstance(self.facts.native, Missing):
            self._miss("native stacks", self.facts.native.because)
        self._keep()

    def _is_worth_a_reference(self) -> bool:
        """Tell whether the unchanged command is run once more, after the changes.

        What helped is told from what merely came later by this alone: so the budget may be
        overdrawn by a part of a trial.
        """
        helped = any(one.acted and one.low > 1.0 for one in self._known().what_ifs)
        enough = self._left_s() > self.start_s or not self._references()
        return enough or (helped and self._left_s() > -_OVERDRAFT * self._total_s())

    def _compare(self, tried: Tried) -> None:
        """Work out what each change did, from all references that there are by now."""
        found = []
        for (change, value), trials in tried.items():
            answer = what_if(change, value, self._references(), trials)
            if isinstance(answer, str):
                self._miss(f"the change {change} = {value}", answer)
            else:
                found.append(answer)
        self.facts = replace(self._known(), what_ifs=tuple(found))
        self._keep()

    def _references(self) -> list[Trial]:
        return [one for one in self.lab.done if one.name in ("ceilings", "reference")]

    # -- what they share -------------------------------------------------------------------------

    def _lengths(self, share: float, windows: int) -> plans.Lengths | str:
        """Return how long the windows of the next trial may be, or why there can be none."""
        left = self._left_s() - 1.2 * self.start_s
        if left < 2.0 and self.ask.steps is None:
            return _SPENT
        seconds = max(2.0, min(left, share * self.ask.windows_s))
        return plans.lengths(self._known(), self.ask.steps, seconds, windows)

    def _try(
        self,
        name: str,
        plan: TrialPlan,
        says: str,
        also: Callable[[Path], None] | None = None,
    ) -> Trial | str:
        """Run a trial that the diagnosis can do without; why, if it measured nothing.

        also: called a few times a second with the trial's folder, once there are steps.
        """
        windows_s = sum(
            one.seconds if one.seconds < plans.NO_BOUND else 2.0 for one in plan.windows
        )
        about_s = self.start_s + windows_s
        try:
            limit_s = 3 * about_s + 60.0
            late = Late(windows_s, also)
            trial = self._trial(
                name, plan, limit_s, says=says, about_s=about_s, on_poll=late.is_over
            )
        except HotlapError as error:
            return str(error)
        if results(trial):
            if not trial.is_sound and not self.is_interrupted:
                self._miss(says, trial.why_not())
            return trial
        return (
            "the script ended before its windows could begin" if trial.is_sound else trial.why_not()
        )

    def _trial(
        self,
        name: str,
        plan: TrialPlan,
        limit_s: float,
        *,
        says: str,
        about_s: float,
        on_poll: Callable[[Path], bool] | None = None,
    ) -> Trial:
        if why := self.lab.room():
            raise NotMeasurable(f"there is no room for the record of a trial: {why}")
        try:
            trial = self.lab.run(name, plan, limit_s, says=says, about_s=about_s, on_poll=on_poll)
        except OSError as error:
            raise NotMeasurable(f"a trial could not be recorded: {error}") from error
        self.lab.is_interrupted = trial.ended.by == "interrupt"
        return trial

    def _total_s(self) -> float:
        total = self.ask.budget_s or DEFAULT_STARTS * self.start_s + DEFAULT_WINDOWS_S
        return min(total, self.ask.most_s or math.inf)

    def _left_s(self) -> float:
        return self._total_s() - (time.monotonic() - self.begun_s)

    def _known(self) -> Facts:
        assert self.facts is not None
        return self.facts

    def _miss(self, what: str, because: str) -> None:
        self.missing.append((what, because))

    def _keep(self) -> Facts:
        """Add what all trials share, write the facts, and return them."""
        told = dict(self.missing)
        facts = replace(
            self._known(),
            trials=tuple(one.to_dict() for one in self.lab.done),
            not_measured=tuple(told.items()),
        )
        try:
            stored.save(facts, self.lab.folder / FACTS_FILE)
        except OSError as error:
            told["a file with the facts"] = f"it could not be written: {error}"
            facts = replace(facts, not_measured=tuple(told.items()))
        return facts
