"""A machine made by hand, on which a search tries knobs made by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hotlap.tune import candidates
from hotlap.tune.search import Means, Search
from hotlap.values.arm import Arm, ArmRun
from hotlap.values.finding import Bounds
from hotlap.values.knob import Case, No, Offer
from hotlap.values.tuning import Sameness, Tried
from unit.diagnose.made import HEALTHY, HEALTHY_STEP, facts, run

MS = 1_000_000
STRETCHES = 24
ABOUT_S = 10.0

Speed = Callable[[Mapping[str, Any]], float]
Answer = Offer | No | Callable[[Case], Offer | No]


def arm_run(arm: Arm, nth: int = 0, factor: float = 1.0, **fields: Any) -> ArmRun:
    """Return a run of 48 steps whose stretches take 10 ms times a factor, within half a percent."""
    chance = random.Random(nth)
    spans = [
        round(10 * MS * factor * (1 + chance.uniform(-0.005, 0.005))) for _ in range(STRETCHES)
    ]
    given: dict[str, Any] = {
        "spans_ns": tuple(spans),
        "steps": 2 * STRETCHES,
        "start_s": 2.0,
        "proofs": {knob: {"acted": True, "proof": f"{knob} acted"} for knob in arm.settings},
    }
    return ArmRun(arm, nth, **(given | fields))


@dataclass
class Machine:
    """Runs arms at once, and counts the time that they would have taken.

    speed: time of a step by settings, 1.0 for the command as it stands. idle: knobs that do
    nothing. failing: why an arm fails, by a knob that is on. start_s: by a knob that is on.
    slower_from: the run from which on everything takes ``slower`` times as long.
    interrupted_at: the run in which Ctrl-C comes. bare_fails: the command itself fails.
    """

    speed: Speed = lambda _: 1.0
    idle: frozenset[str] = frozenset()
    failing: Mapping[str, str] = field(default_factory=dict)
    start_s: Mapping[str, float] = field(default_factory=dict)
    slower_from: int | None = None
    slower: float = 1.3
    interrupted_at: int | None = None
    bare_fails: bool = False
    runs: list[ArmRun] = field(default_factory=list)
    now_s: float = 0.0
    is_interrupted: bool = False
    about_s: float = ABOUT_S

    def run(self, arm: Arm, says: str = "") -> ArmRun:
        """Run an arm."""
        assert says
        assert not self.is_interrupted, "a run was begun after Ctrl-C"
        nth = len(self.runs)
        self.now_s += self.about_s
        factor = self.speed(arm.settings)
        if self.slower_from is not None and nth >= self.slower_from:
            factor *= self.slower
        proofs = {
            knob: {"acted": knob not in self.idle, "proof": f"{knob} was seen"}
            for knob in arm.settings
        }
        start_s = 2.0 + sum(self.start_s.get(knob, 0.0) for knob in arm.settings)
        failed = next((why for knob, why in self.failing.items() if knob in arm.settings), None)
        if self.bare_fails and not arm.settings:
            failed = "exit code 1"
        if nth == self.interrupted_at:
            self.is_interrupted = True
            failed = "Ctrl-C ended the trial"
        gone = {"spans_ns": (), "steps": 0} if failed else {}
        made = arm_run(arm, nth, factor, proofs=proofs, start_s=start_s, failed=failed, **gone)
        self.runs.append(made)
        return made

    def arms(self) -> list[dict[str, Any]]:
        """Return the settings of all runs, in order."""
        return [dict(one.arm.settings) for one in self.runs]


def product(**factors: float | Mapping[Any, float]) -> Speed:
    """Return a speed where each knob has its own factor, or one by its value."""

    def speed(settings: Mapping[str, Any]) -> float:
        whole = 1.0
        for knob, value in settings.items():
            one = factors.get(knob, 1.0)
            whole *= one[value] if isinstance(one, Mapping) else one
        return whole

    return speed


def offer(*values: Any, numerics: str = "identical", hope: float = 2.0) -> Offer:
    """Return an offer. hope: the speed-up that is predicted for it."""
    return Offer(values or (True,), numerics, "made by hand", Bounds(hope, hope))


class Stage:
    """A search over knobs made by hand. offers: by knob, what it answers to a case."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        machine: Machine,
        offers: Mapping[str, Answer],
        *,
        most: str = "resampled",
        budget_s: float = 10_000.0,
        horizon: int | None = None,
        insisted: Mapping[str, Any] | None = None,
        proofs: Mapping[str, str] | None = None,
    ) -> None:
        self.machine = machine
        self.diagnosed: list[dict[str, Any]] = []
        self.proven: list[tuple[dict[str, Any], str]] = []
        self._proofs = proofs or {}
        known = {
            name: SimpleNamespace(applies=_answer(one), NUMERICS=("identical",))
            for name, one in offers.items()
        }
        patch.setattr(
            candidates,
            "catalogue",
            SimpleNamespace(KNOBS=tuple(offers), load=known.__getitem__),
        )
        means = Means(
            runs=machine,
            environment=lambda knob, value: {f"{knob}_variable".upper(): str(value)},
            diagnose=self._diagnose,
            prove=self._prove,
            snippet=lambda knob, value: f"{knob}({value})",
            now_s=lambda: machine.now_s,
        )
        self.search = Search(means, case(), most, budget_s, horizon, insisted or {})

    def play(self) -> Search:
        """Search, prune and offer, as a tuning does."""
        self.search.run()
        self.search.prune()
        self.search.offer()
        return self.search

    def one(self, knob: str, value: Any = True) -> Tried:
        """Return what became of a knob with one value."""
        (found,) = (
            one for one in self.search.tried if one.knob == knob and one.value in (value, None)
        )
        return found

    @property
    def kept(self) -> dict[str, Any]:
        """Return what is kept: value by knob."""
        return {one.knob: one.value for one in self.search.kept}

    def _diagnose(self, arm: Arm) -> Case:
        self.diagnosed.append(dict(arm.settings))
        return case(arm.settings)

    def _prove(self, base: Arm, tuned: Arm, numerics: str) -> Sameness:
        (fresh,) = tuned.settings.keys() - base.settings.keys()
        self.proven.append((dict(tuned.settings), numerics))
        return Sameness(self._proofs.get(fresh, "identical"))


def case(applied: Mapping[str, Any] | None = None) -> Case:
    """Return a training that its model bounds, under some knobs."""
    return Case(facts(run(HEALTHY_STEP), *HEALTHY), (), {}, applied or {})


def _answer(one: Answer) -> Callable[[Case], Offer | No]:
    return one if callable(one) else lambda _: one
