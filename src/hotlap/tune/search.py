"""The search: knobs in the order of what they promise, each on top of those that are kept.

The command as it stands (later: under what is kept) is run before and after every knob, so that a
machine that changes its speed is seen and not taken for a gain. What helps is proven to train the
same before it is kept; then the training is diagnosed anew, since the bottleneck has moved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from hotlap.knobs import catalogue
from hotlap.tune.candidates import Candidate, candidates, names_of, stronger
from hotlap.tune.predicted import of_steps
from hotlap.tune.verdict import (
    Verdict,
    drifted,
    extra_start,
    is_hopeless,
    judge_runs,
    no_gain,
    no_use,
    pays_back,
    whatever_drift,
)
from hotlap.values.arm import Arm, ArmRun
from hotlap.values.comparison import MINIMUM_EFFECT
from hotlap.values.knob import NUMERICS, Case
from hotlap.values.tuning import Sameness, Tried

_MOST_ROUNDS: Final = 3
"""Runs of one knob until it is settled: what is unclear by then is no gain."""
_CONFIRM_RUNS: Final = 6
_REDO: Final = "the machine changed its speed meanwhile"


class Runs(Protocol):
    """What runs arms: ``experiment.arms.Bench``."""

    @property
    def about_s(self) -> float:
        """How long a run takes."""

    @property
    def is_interrupted(self) -> bool:
        """Ctrl-C has ended it."""

    @property
    def runs(self) -> list[ArmRun]:
        """All runs so far."""

    def run(self, arm: Arm, says: str = "") -> ArmRun:
        """Run an arm once more."""


@dataclass(frozen=True)
class Means:
    """What the search works with.

    environment: variables that a knob needs, by (knob, value). diagnose: the case under an arm,
    None where the training could not be diagnosed anew. prove: whether the training under an arm
    (the second) is the same as under the first, for a class of numerics.
    snippet: a knob's change as code. now_s: a clock.
    """

    runs: Runs
    environment: Callable[[str, Any], Mapping[str, str]]
    diagnose: Callable[[Arm], Case | None]
    prove: Callable[[Arm, Arm, str], Sameness]
    snippet: Callable[[str, Any], str]
    now_s: Callable[[], float] = time.monotonic


@dataclass
class Search:
    """One search. most: strongest class allowed. until_s: when the budget is spent, by the clock.

    horizon: steps of a whole run, None if unknown. insisted: values that the user asked for.
    """

    means: Means
    case: Case
    most: str
    until_s: float
    horizon: int | None = None
    insisted: Mapping[str, Any] = field(default_factory=dict)
    tried: list[Tried] = field(default_factory=list)
    kept: list[Tried] = field(default_factory=list)
    arm: Arm = field(default_factory=Arm)
    not_tried: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    _proven: dict[str, Sameness] = field(default_factory=dict)
    _settled: set[tuple[str, str]] = field(default_factory=set)
    _base: ArmRun | None = None
    """The latest run of what is kept so far."""

    @property
    def sameness(self) -> Sameness:
        """Return what is proven of all that is kept together, against the unchanged command."""
        if not self.kept:
            return Sameness("identical")
        unknown = Sameness("unknown, because these knobs were not compared together")
        return self._proven.get(self.arm.says, unknown)

    def run(self) -> None:
        """Try until nothing is left, the budget is spent, or Ctrl-C."""
        while True:
            queue, refused = candidates(self.case, self.most, self.insisted)
            self._refuse(refused)
            queue = [one for one in queue if _key(one) not in self._settled]
            if not queue or not self._has_time(names_of(queue)):
                return
            kept = self._first_that_helps(queue)
            if kept is None:
                return
            fresh = self._has_time(("another diagnosis",)) and self.means.diagnose(self.arm)
            self.case = replace(fresh or self.case, applied=self.arm.settings)

    def _first_that_helps(self, queue: list[Candidate]) -> Tried | None:
        """Try candidates in turn until one is kept; where it has other values, the best of them."""
        best: tuple[Tried, ArmRun] | None = None
        for at, one in enumerate(queue):
            if best is not None and one.knob != best[0].knob:
                break
            if not self._has_time(names_of(queue[at:])):
                break
            found = self._try(one)
            if self.means.runs.is_interrupted:
                break
            if found is not None and best is not None:
                slower, best = sorted((best, found), key=lambda each: _mid(each[0]))
                because = f"{best[0].knob} = {best[0].value}{_with(best[0])} is faster still"
                self.tried.append(replace(slower[0], word="rejected", because=because))
            best = best or found
        if best is None:
            return None
        return self._keep(*best)

    def _has_time(self, left: tuple[str, ...]) -> bool:
        """Tell whether the budget holds another knob and the confirmation of the plan."""
        if self.means.runs.is_interrupted:
            return False
        reserve = (_CONFIRM_RUNS if self.kept else 4) + 2
        if self.means.now_s() + reserve * self.means.runs.about_s <= self.until_s:
            return True
        self.not_tried = tuple(dict.fromkeys((*self.not_tried, *left)))
        return False

    # -- one knob --------------------------------------------------------------------------------

    def _try(self, one: Candidate) -> tuple[Tried, ArmRun] | None:
        """Run a knob against what is kept; return it if it helps and trains the same."""
        self._settled.add(_key(one))
        arm = self._under(one)
        if not self._has_base(one):
            return None
        verdict, runs = self._measure(one, arm)
        if verdict is None:
            return None
        if verdict.word != "gain":
            self._reject(one, no_gain(verdict), verdict)
            return None
        extra = extra_start(self._base, runs[-1])
        if why := self._too_late(extra, verdict):
            self._reject(one, why, verdict)
            return None
        proven = self.means.prove(self.arm, arm, one.numerics)
        if proven.word.startswith("differs"):
            because = f"it is faster ({verdict.says}), but the training {proven.word}"
            self._reject(one, because, verdict)
            return None
        self._proven[arm.says] = proven
        tried = self._tried(one, "kept", f"{verdict.says}; the training is {proven.word}", verdict)
        proof = runs[-1].proof(one.knob)
        return replace(tried, proof=proof, extra_start_s=extra), runs[-1]

    def _has_base(self, one: Candidate) -> bool:
        """Run what is kept so far, where that was not done; tell whether it could be run."""
        if self._base is None:
            return self._fresh_base(one, "as it stands")
        return True

    def _fresh_base(self, one: Candidate, says: str) -> bool:
        """Run what is kept so far once more; where it fails, no knob can be compared with it."""
        run = self.means.runs.run(self.arm, says)
        self._base = run if run.failed is None else None
        if run.failed is not None and not self.means.runs.is_interrupted:
            self._reject(one, f"what it is compared with could not be run: {run.failed}")
        return run.failed is None and not self.means.runs.is_interrupted

    def _measure(self, one: Candidate, arm: Arm) -> tuple[Verdict | None, list[ArmRun]]:
        """Run a knob, and what it is compared with before and after it, until that is settled."""
        before: list[ArmRun] = []
        after: list[ArmRun] = []
        verdict = Verdict("unclear", None)
        for _ in range(_MOST_ROUNDS):
            first = self._reference()
            run = self.means.runs.run(arm, one.says)
            if why := no_use(run, one.settings):
                if not self.means.runs.is_interrupted:
                    self._reject(one, why)
                return None, []
            if is_hopeless(first, run):
                return judge_runs([first], [run]), [run]
            if not self._fresh_base(one, "as before, for comparison"):
                return None, []
            last = self._reference()
            if self._is_drift(first, last):
                if certain := whatever_drift(first, run, last):
                    return certain, [run]
                continue
            before += [first, last] if first not in before else [last]
            after.append(run)
            verdict = judge_runs(before, after)
            if verdict.word != "unclear" or not _is_hopeful(one, verdict):
                break
        if not after:
            self._reject(one, f"{_REDO}: no two runs of it could be compared")
            return None, []
        return verdict, after

    def _is_drift(self, before: ArmRun, after: ArmRun) -> bool:
        """Tell whether the machine changed between two runs of one arm, and note it."""
        found = drifted(before, after)
        if found and _REDO not in self.notes:
            self.notes.append(_REDO)
        return found

    def _reference(self) -> ArmRun:
        """Return the latest run of what is kept: just before the knob's, as one follows another."""
        if self._base is None:
            raise RuntimeError("a knob is compared before the command was run")
        return self._base

    def _too_late(self, extra_s: float | None, verdict: Verdict) -> str | None:
        """Say why a longer start-up is not earned in a run of this length; None if it is."""
        steps = pays_back(extra_s, self._base, verdict)
        if not steps or self.horizon is None or steps < self.horizon:
            return None
        return (
            f"it is faster ({verdict.says}), but its start takes {extra_s:.0f} s longer, which "
            f"{steps:,} steps would earn; this run has {self.horizon:,}"
        )

    # -- what becomes of it ----------------------------------------------------------------------

    def _keep(self, tried: Tried, run: ArmRun) -> Tried:
        self.arm = run.arm
        self._base = run
        kept = [tried]
        for knob, value in tried.beside.items():
            because = f"it goes with {tried.knob} = {tried.value}"
            numerics = catalogue.load(knob).NUMERICS[0]
            snippet = self.means.snippet(knob, value)
            kept.append(
                Tried(
                    knob, value, numerics, "kept", because, proof=run.proof(knob), snippet=snippet
                )
            )
        self.tried += kept
        self.kept += kept
        return tried

    def prune(self) -> None:
        """Take off again what only helped before the others came: one run without each knob."""
        for tried in self.kept[:-1]:
            if self._base is None or not self._has_time(()):
                return
            environment = self.means.environment(tried.knob, tried.value)
            arm = self.arm.without(tried.knob, environment)
            run = self.means.runs.run(arm, f"without {tried.knob}")
            if self.means.runs.is_interrupted or run.failed:
                return
            again = self.means.runs.run(self.arm, "with all, for comparison")
            if self.means.runs.is_interrupted or again.failed:
                return
            before, self._base = self._base, again
            verdict = judge_runs([before, again], [run])
            if verdict.word == "gain" and not self._is_drift(before, again):
                proven = self.means.prove(Arm(), arm, self._strongest(tried))
                if self.means.runs.is_interrupted or proven.word.startswith("differs"):
                    return
                self._proven[arm.says] = proven
                self.arm, self._base = arm, run
                self.kept.remove(tried)
                at = self.tried.index(tried)
                because = f"it helped alone; beside the others, without it is {verdict.says}"
                self.tried[at] = replace(tried, word="rejected", because=because)

    def _strongest(self, but: Tried) -> str:
        """Return the strongest class of what is kept beside one knob."""
        classes = [one.numerics for one in self.kept if one is not but]
        return max(classes, key=NUMERICS.index, default="identical")

    def _reject(self, one: Candidate, because: str, verdict: Verdict | None = None) -> None:
        self.tried.append(self._tried(one, "rejected", because, verdict))

    def _refuse(self, refused: list[Tried]) -> None:
        """Note what does not apply, once: after another diagnosis the reason may be another."""
        known = {one.knob for one in self.tried}
        self.tried += [one for one in refused if one.knob not in known]

    def _tried(
        self, one: Candidate, word: str, because: str, verdict: Verdict | None = None
    ) -> Tried:
        return Tried(
            one.knob,
            one.value,
            one.offer.numerics,
            word,
            because,
            of_steps(one.offer.predicted, self.case.facts),
            verdict.interval if verdict is not None else None,
            snippet=self.means.snippet(one.knob, one.value),
            beside=dict(one.beside),
        )

    def _under(self, one: Candidate) -> Arm:
        """Return what is kept, with a candidate's knobs more."""
        arm = self.arm
        for knob, value in one.settings.items():
            arm = arm.with_knob(knob, value, self.means.environment(knob, value))
        return arm

    def offer(self) -> None:
        """Measure what a stronger class would bring on top of the plan, and offer it only."""
        for one in stronger(self.case, self.most):
            if not self._has_time((one.knob,)):
                return
            arm = self._under(one)
            verdict, runs = self._measure(one, arm) if self._has_base(one) else (None, [])
            if self.means.runs.is_interrupted:
                return
            if verdict is None:
                continue
            if verdict.word != "gain":
                self._reject(one, no_gain(verdict), verdict)
                continue
            because = f"{verdict.says}, but it is of the class {one.offer.numerics!r}"
            found = self._tried(one, "offered", because, verdict)
            self.tried.append(replace(found, proof=runs[-1].proof(one.knob)))


def _with(tried: Tried) -> str:
    """Return what a knob is tried with, in words; empty for nothing."""
    return "".join(f", with {knob} = {value}" for knob, value in tried.beside.items())


def _is_hopeful(one: Candidate, verdict: Verdict) -> bool:
    """Tell whether another run may show a gain: one was predicted, or the first saw one."""
    if one.offer.predicted.low is not None:
        return True
    return verdict.interval is not None and verdict.interval.mid >= 1.0 + MINIMUM_EFFECT


def _mid(tried: Tried) -> float:
    return tried.measured.mid if tried.measured is not None else 0.0


def _key(one: Candidate) -> tuple[str, str]:
    return one.knob, repr((one.value, sorted(one.beside.items())))
