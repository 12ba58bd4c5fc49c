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

from typing import Any, Final

from hotlap.knobs.loader_argument import numerics_of, replace_argument
from hotlap.knobs.offers import judged, named_by, no_variables
from hotlap.knobs.target import Target
from hotlap.values.facts import Facts
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import cores_of_rank, share_of, training_loader

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
    return judged(case, NAME, share, Offer(values, numerics_of(case), because))


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
