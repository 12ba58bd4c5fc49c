"""# loader_workers: another number of processes that prepare batches

**What.** `num_workers` of the loaders. Workers prepare batches beside the training; without them
preparing takes turns with the model.

**Where it helps.** Where the training waits for its input, by the rates that the loader reached
alone. Never more workers than cores that quota, affinity and the ranks on the machine leave. A
stream without workers gets none: workers that do not share it out would each give all of it.

**What else it changes.** Nothing where the data set draws no random numbers: samples and their
order stay the same. Else its draws, since each worker draws with a seed of its own. Memory for
each worker.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from hotlap.knobs.loader_argument import numerics_of, replace_argument
from hotlap.knobs.offers import best_trial, judged, named_by, no_variables, of_the_run
from hotlap.knobs.target import Target
from hotlap.values.facts import Facts, Measured
from hotlap.values.finding import Bounds
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import (
    cores_of_rank,
    is_cpu,
    run_share,
    share_of,
    training_loader,
    training_rate,
)

NAME: Final = "loader_workers"
PHASE: Final = "data_wait"
NUMERICS: Final = ("identical", "resampled")
environment = no_variables
_NEAR: Final = 0.95
"""Part of the best rate that counts as equal to it."""


def applies(case: Case) -> Offer | No:
    """Offer the knee of the loader's curve, and what lies beside it."""
    loader = training_loader(case.facts)
    if loader is None:
        return No("no DataLoader feeds the training")
    if loader.iterable and not loader.workers:
        return No("its data set is a stream, which each worker would give in whole")
    values = _values(case.facts, loader.workers)
    if not values:
        return No(f"{loader.workers} workers are what the cores of this training carry")
    if _knee(case.facts) == loader.workers and named_by(case, NAME) is None:
        return No(f"the loader alone is fastest with the {loader.workers} workers that it has")
    because = f"the training waits for a loader with {loader.workers} workers"
    share = share_of(case.facts, "data_wait")
    answer = judged(case, NAME, share, Offer(values, numerics_of(case), because))
    if isinstance(answer, No):
        return answer
    return replace(answer, predicted=_predicted(case, answer))


def _predicted(case: Case, offer: Offer) -> Bounds:
    """Return what sharing the work out brings: less than if a cause in it were gone."""
    facts, value = case.facts, offer.values[0]
    found = named_by(case, NAME)
    if found is not None and found.remedy.kind == "knob":
        return offer.predicted  # that is the cause, and its bounds are those of this change
    tried = best_trial(facts, NAME)
    if tried is not None and tried.value == value:
        return of_the_run(facts, tried)
    return _shared_out(facts, value) or offer.predicted


def _shared_out(facts: Facts, workers: int) -> Bounds | None:
    """Return bounds of the run's speed-up by the rates that loader and model reach alone.

    At most the slower of the two is what the training reaches. At least they take turns, since
    workers and a model on the processor share its cores. None where one of them is not known.
    """
    now, steps = training_rate(facts), run_share(facts, "steps")
    alone = next((one.per_s for one in facts.curve if one.workers == workers), None)
    if not now or not alone or steps is None or not isinstance(facts.compute_per_s, Measured):
        return None
    model = facts.compute_per_s.value
    in_turns, beside = 1.0 / (1.0 / alone + 1.0 / model), min(alone, model)
    low = max(1.0, in_turns / now) if is_cpu(facts) else max(1.0, _NEAR * beside / now)
    high = max(low, beside / now)
    return Bounds(*(1.0 / (1.0 - steps * (1.0 - 1.0 / one)) for one in (low, high)))


def _rates(facts: Facts) -> dict[int, float]:
    cores = cores_of_rank(facts)
    return {one.workers: one.per_s for one in facts.curve if one.workers <= cores}


def _knee(facts: Facts) -> int | None:
    """Return the fewest workers that reach nearly the loader's best rate; None unknown."""
    rates = _rates(facts)
    enough = _NEAR * max(rates.values(), default=0.0)
    return min((count for count, rate in rates.items() if rate >= enough), default=None)


def _values(facts: Facts, now: int) -> tuple[int, ...]:
    """Return the numbers to try, the knee first. None at all only where that is the best."""
    cores, knee = cores_of_rank(facts), _knee(facts)
    wanted = [cores, cores // 2]
    if knee is not None:
        counts = sorted(_rates(facts))
        at = counts.index(knee)
        wanted = [knee, *counts[at + 1 : at + 2], *counts[max(0, at - 1) : at]]
    return tuple(one for one in dict.fromkeys(wanted) if one != now and (one or knee == 0))


def apply(target: Target, _value: Any) -> None:
    """Give the number to all loaders but streams without workers."""
    replace_argument(target, "num_workers")


def snippet(value: Any) -> str:
    """Return the argument to add where the loader is made."""
    return f"loader = DataLoader(..., num_workers={int(value)})"
