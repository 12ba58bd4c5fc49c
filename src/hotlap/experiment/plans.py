"""Which windows a trial has, and how long they are: pure functions of what is known so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from hotlap.values.facts import Facts
from hotlap.values.shares import cores_of_rank
from hotlap.values.summary import LoaderSummary, ProcessSummary
from hotlap.values.trial import TrialPlan, WindowPlan

SAMPLE_HZ: Final = 100.0
SWITCH_S: Final = 0.00002
"""How soon a look gets the interpreter. At Python's own 5 ms the looks pile up on the calls that
let go of it, and quick Python code beside them is not seen."""
NO_BOUND: Final = 10**9
NOTICEABLE: Final = 0.03
"""Share of the steps' time below which the input is not looked at closer."""
BESIDE: Final = ("data_wait", "other", "logging")
_WORTH_A_LOOK: Final = 0.1
COMPUTE: Final = ("forward", "backward", "optimizer", "other", "logging")
_LEAST_STEPS: Final = 4
_MOST_STEPS: Final = 200
_SPARE_STEPS: Final = 8
"""Steps that lie between windows: before the first, and while batches fetched ahead are used."""
_OPERATOR_STEPS: Final = 4
_WINDOW_S: Final = 3.0
_POINT_S: Final = 2.0
_BATCHES: Final = 64
_BEFORE_END: Final = 4
_AFTER_END: Final = 3
"""Some frameworks have fetched a batch or two ahead when an epoch ends."""
_SAMPLES: Final = 256
_PASS_S: Final = 1.5
_NATIVE_S: Final = 8.0


@dataclass(frozen=True)
class Lengths:
    """How long windows over steps may be.

    steps: measured steps in each. warm_up: steps before the first. window_s: wall time at most.
    """

    steps: int
    warm_up: int
    window_s: float


def watch_plan(seconds: float) -> TrialPlan:
    """Return the plan of a trial that is watched, for so long after its first step at most."""
    return TrialPlan(
        windows=(WindowPlan("baseline", NO_BOUND, seconds),),
        sample_hz=SAMPLE_HZ,
        sample_switch_s=SWITCH_S,
        clock_samples=True,
    )


def lengths(facts: Facts, wished_steps: int | None, seconds: float, windows: int) -> Lengths | str:
    """Return how long windows over steps can be, or in words why none can.

    wished_steps: steps per window that the user asked for. seconds: wall time for all of them.
    windows: how many there are to be.
    """
    step = facts.run.trainers[0].step if facts.run.trainers else None
    step_s = ((step.mean_ns or step.median_ns or 0) if step else 0) / 1e9
    if step is None or step_s <= 0:
        return "the length of a step is not known"
    warm_up = max(1, min(step.warm_up_steps, 50))
    each_s = max(0.5, min(_WINDOW_S, seconds / windows)) if wished_steps is None else math.inf
    steps = wished_steps or max(_LEAST_STEPS, min(_MOST_STEPS, math.ceil(each_s / step_s)))
    if facts.whole_run:
        rest = step.steps - warm_up - _SPARE_STEPS - queued(facts)
        if rest < windows * _LEAST_STEPS and warm_up > 2:
            warm_up = 2
            rest = step.steps - warm_up - _SPARE_STEPS - queued(facts)
        if rest < windows * _LEAST_STEPS:
            return f"the run has {step.steps} steps, too few for windows beside each other"
        steps = min(steps, rest // windows)
    if steps * step_s * windows > 3 * seconds and wished_steps is None:
        return (
            f"a step takes {step_s:.1f} s: {windows} windows of {steps} steps do not fit into what "
            "is left of the budget"
        )
    return Lengths(steps, warm_up, max(each_s, 1.5 * steps * step_s))


def ceilings_plan(facts: Facts, given: Lengths) -> TrialPlan:
    """Return the plan of the trial that measures what the parts would reach alone."""
    steps = (
        WindowPlan("warm_up", given.warm_up, NO_BOUND),
        WindowPlan("baseline", given.steps, given.window_s),
    )
    again = WindowPlan("baseline", given.steps, given.window_s)
    if training_loader(facts) is None:
        return TrialPlan(windows=(*steps, again))
    replay = WindowPlan("replay", given.steps, given.window_s)
    return TrialPlan(windows=(*steps, replay, again, *_loader_windows(facts)))


def loader_plan(facts: Facts) -> TrialPlan:
    """Return the plan of a trial of the loader alone, for runs with few steps."""
    return TrialPlan(windows=(WindowPlan("warm_up", 1, NO_BOUND), *_loader_windows(facts)))


def _loader_windows(facts: Facts) -> tuple[WindowPlan, ...]:
    """Return the windows of the loader alone: as it is set, with other workers, from storage.

    The last one leaves the page cache as nobody found it, so nothing comes after.
    """
    counts = worker_counts(facts)
    alone = tuple(
        WindowPlan("workers", _BATCHES * max(1, count), _POINT_S, count) for count in counts
    )
    cold = (WindowPlan("storage", _SAMPLES, _PASS_S),) if counts else ()
    return (WindowPlan("drain", _BATCHES, _POINT_S), *alone, *cold)


def operators_plan(given: Lengths) -> TrialPlan:
    """Return the plan of the trial under torch's profiler."""
    return TrialPlan(
        windows=(
            WindowPlan("warm_up", given.warm_up, NO_BOUND),
            WindowPlan("operators", _OPERATOR_STEPS, NO_BOUND),
        )
    )


def unseen_epoch(facts: Facts) -> float | None:
    """Return the steps of an epoch that is longer than what was watched; None where none is."""
    loader, steps = training_loader(facts), facts.counts.get("steps", 0.0)
    if facts.whole_run or loader is None or not steps:
        return None
    length = facts.defaults.get("epoch_batches")
    each = loader.batches / steps or facts.counts.get("batches_per_step", 0.0)
    if not length or each <= 0 or steps >= length / each:
        return None
    horizon = facts.run.horizon_steps
    return None if horizon is not None and horizon < length / each else length / each


def epoch_end_plan(seconds: float) -> TrialPlan:
    """Return the plan of a trial that comes to an epoch's end. seconds: what that may take."""
    return TrialPlan(
        windows=(
            WindowPlan("warm_up", _BEFORE_END, NO_BOUND),
            WindowPlan("epoch_end", _AFTER_END, seconds),
        ),
        sample_hz=SAMPLE_HZ,
        sample_switch_s=SWITCH_S,
    )


def native_plan(given: Lengths) -> TrialPlan:
    """Return the plan of a trial that is sampled from outside, with the time to find symbols."""
    return TrialPlan(
        windows=(
            WindowPlan("warm_up", given.warm_up, NO_BOUND),
            WindowPlan("native", NO_BOUND, _NATIVE_S),
        )
    )


def changed_plan(given: Lengths, change: str | None = None, value: Any = None) -> TrialPlan:
    """Return the plan of a trial with one change; without one, of its reference."""
    return TrialPlan(
        windows=(
            WindowPlan("warm_up", given.warm_up, NO_BOUND),
            WindowPlan("baseline", given.steps, given.window_s),
        ),
        settings={} if change is None else {change: value},
    )


def wants_operators(facts: Facts) -> bool:
    """Tell whether the model and the code around it take more of the steps than the input does."""
    shares = step_shares(facts)
    return sum(shares.get(name, 0.0) for name in COMPUTE) > shares.get("data_wait", 0.0)


def wants_native(facts: Facts) -> bool:
    """Tell whether code beside the model takes enough of the steps to look below its lines."""
    shares = step_shares(facts)
    return sum(shares.get(name, 0.0) for name in BESIDE) >= _WORTH_A_LOOK


def worker_counts(facts: Facts) -> tuple[int, ...]:
    """Return the worker counts to try: 0, 1, 2, 4 … up to the cores that one rank has.

    None where the input takes too little of the time for its curve to matter.
    """
    if step_shares(facts).get("data_wait", 0.0) + _edge_share(facts) < NOTICEABLE:
        return ()
    cores = cores_of_rank(facts)
    counts = [0]
    count = 1
    while count < cores:
        counts.append(count)
        count *= 2
    return (*counts, cores)


def step_shares(facts: Facts) -> dict[str, float]:
    """Return the share of each step phase in a steady step, of the first trainer."""
    if not facts.run.trainers:
        return {}
    phases = facts.run.trainers[0].step.phases
    return {name: part.share for name, part in phases.items() if part.share is not None}


def training_loader(facts: Facts) -> LoaderSummary | None:
    """Return the loader that feeds the training; None when none was seen."""
    trainer: ProcessSummary | None = facts.run.trainers[0] if facts.run.trainers else None
    if trainer is None:
        return None
    training = [one for one in trainer.loaders if one.role == "training"]
    return max(training, key=lambda one: one.batches, default=None)


def queued(facts: Facts) -> int:
    """Return how many batches workers fetch ahead, by torch's default."""
    loader = training_loader(facts)
    return 2 * loader.workers if loader is not None else 0


def _edge_share(facts: Facts) -> float:
    part = facts.run.phases.get("epoch_edge")
    return part.share or 0.0 if part is not None else 0.0
