"""That the training under knobs is the same: short trials that record it, held against each other.

All of them begin with one seed, which the script's own replaces. The command as it stands is
recorded twice: where these two differ, nothing can be told of a third.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hotlap.experiment.arms import Bench, epoch_steps
from hotlap.experiment.equivalence import CLASSES, sameness
from hotlap.experiment.trials import Trial
from hotlap.experiment.watched import trainer
from hotlap.values.arm import Arm
from hotlap.values.facts import Facts
from hotlap.values.trace import TrainingTrace
from hotlap.values.trial import TrialPlan
from hotlap.values.tuning import Sameness

_MOST_STEPS: Final = 48
_LEAST_STEPS: Final = 12
_SECONDS: Final = 10.0
_BEYOND_EPOCH: Final = 4
_EPOCH_TIMES: Final = 3
"""An epoch of up to so many times the steps is recorded as a whole, with its end."""
_SLOWER: Final = 6.0
"""A recording may take so many times longer than the steps alone."""
_EPSILONS: Final = {"rounding": 1e-6, "reduced": 4e-3}
"""By how much parameters are perturbed for a yardstick, relatively, by class of numerics."""


@dataclass(frozen=True)
class _Recorded:
    """A trial that was to record the training. because: why there is no trace, in words.

    is_ours: the failure was hotlap's, and says nothing of the arm.
    """

    trace: TrainingTrace | None
    because: str = ""
    is_ours: bool = False


class Prover:
    """Proves arms against the unchanged command.

    bench: where its trials are run. facts: of the command as it stands.
    """

    def __init__(self, bench: Bench, facts: Facts) -> None:
        self._bench = bench
        each_s = bench.span.seconds / max(1, bench.span.steps)
        self.steps = steps_to_record(each_s, epoch_steps(facts))
        self._seconds = max(_SECONDS, self.steps * each_s) * _SLOWER
        self._known: dict[str, _Recorded] = {}
        self._classes: dict[str, str] = {}

    def prove(self, base: Arm, tuned: Arm, numerics: str) -> Sameness:
        """Return whether the training under an arm is the same as that of the unchanged command.

        base: the arm to which the latest knob was added. numerics: the class of that knob, one of
        ``equivalence.CLASSES``. Raises HotlapError where no trial can be recorded any more.
        """
        for knob in tuned.settings.keys() - base.settings.keys():
            self._classes[knob] = numerics
        own = [self._classes.get(knob, "identical") for knob in tuned.settings]
        numerics = max((*own, numerics), key=CLASSES.index)
        if not self._references(numerics):
            return self._unknown()
        found = self._recorded(tuned, {}, f"records the training under {tuned.says}")
        if self._bench.lab.is_interrupted:
            return self._unknown()
        if found.trace is None and found.is_ours:
            return Sameness(f"unknown, because {found.because}")
        if found.trace is None:
            return Sameness(f"differs: it failed: {found.because}")
        pair = [one for name in ("base", "again") if (one := self._trace(name)) is not None]
        return sameness(
            pair,
            found.trace,
            numerics,
            self._trace(f"perturbed {numerics}"),
            self._trace("reseeded"),
        )

    def _references(self, numerics: str) -> bool:
        """Record what the arms are held against, as far as that is not done; tell if it worked."""
        asked: dict[str, Mapping[str, Any]] = {"base": {}, "again": {}}
        if numerics in _EPSILONS:
            asked[f"perturbed {numerics}"] = {"perturb": _EPSILONS[numerics]}
        if numerics == "resampled":
            asked["reseeded"] = {"seed": 1}
        for name, settings in asked.items():
            if name not in self._known:
                found = self._recorded(Arm(), settings, _SAYS[name.split()[0]])
                if self._bench.lab.is_interrupted:
                    return False
                self._known[name] = found
        return self._known["base"].trace is not None

    def _trace(self, name: str) -> TrainingTrace | None:
        found = self._known.get(name)
        return found.trace if found is not None else None

    def _unknown(self) -> Sameness:
        if self._bench.lab.is_interrupted:
            return Sameness("unknown, because Ctrl-C ended it")
        failed = self._known["base"].because
        return Sameness(f"unknown, because the unchanged training was not recorded: {failed}")

    def _recorded(self, arm: Arm, settings: Mapping[str, Any], says: str) -> _Recorded:
        base = self._trace("base")
        # Where the unchanged one was cut short by time, the others stop at the same step.
        cut = base is not None and base.ended == "seconds"
        plan = TrialPlan(
            settings={"seed": 0, **settings},
            trace=base.steps_ended if cut and base is not None else self.steps,
            trace_s=self._seconds * (4 if base is not None else 1),
        )
        limit_s = 60.0 + 4 * self._bench.start_s + 8 * self._seconds
        lab = self._bench.lab
        try:
            with lab.under(arm.settings, arm.environment):
                about_s = self._bench.start_s + self._seconds / _SLOWER
                trial = lab.run("trace", plan, limit_s, says=says, about_s=about_s)
        except OSError as error:
            return _Recorded(None, f"it could not be recorded: {error}", is_ours=True)
        lab.is_interrupted = lab.is_interrupted or trial.ended.by == "interrupt"
        return _of(trial)


_SAYS: Final = {
    "base": "records the training as it stands",
    "again": "records it once more, for what differs by itself",
    "perturbed": "records it with slightly other parameters, as a yardstick",
    "reseeded": "records it with another seed, as a yardstick",
}


def steps_to_record(each_s: float, epoch: float | None) -> int:
    """Return how many steps are recorded. each_s: time per step. epoch: steps of one, if known."""
    fits = int(_SECONDS / each_s) if each_s > 0 else _MOST_STEPS
    steps = min(_MOST_STEPS, max(_LEAST_STEPS, fits))
    if epoch is not None and epoch <= _EPOCH_TIMES * steps:
        steps = max(steps, math.ceil(epoch) + _BEYOND_EPOCH)
    return steps


def _of(trial: Trial) -> _Recorded:
    process = trainer(trial.record) if trial.record is not None else None
    if not trial.is_sound:
        return _Recorded(None, trial.why_not())
    if process is None:
        return _Recorded(None, "nobody trained in that trial")
    if process.trace is None:
        faults = [one.error for one in process.faults if one.site == "trace"]
        because = f"hotlap itself failed: {faults[0]}" if faults else "no trace was recorded"
        return _Recorded(None, because, is_ours=True)
    return _Recorded(process.trace)
