"""# prefetch_depth: workers prepare more batches ahead

**What.** `prefetch_factor`: batches that each worker prepares ahead. More of them bridge samples
that take much longer than others.

**Where it helps.** Loaders with workers whose samples are of very uneven cost.

**What else it changes.** Memory, for the batches that lie ready. Samples and order stay the same.
"""

from __future__ import annotations

from typing import Any, Final

from hotlap.knobs.loader_argument import replace_argument, workers_of
from hotlap.knobs.offers import judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "prefetch_depth"
PHASE: Final = "data_wait"
NUMERICS: Final = ("identical",)
environment = no_variables
_DEFAULT: Final = 2


def applies(case: Case) -> Offer | No:
    """Offer more batches ahead to a loader with workers that the training waits for."""
    if not workers_of(case):
        return No("no loader with workers feeds the training")
    given = [one.value for one in case.facts.settings if one.name == "prefetch_factor"]
    now = max((one for one in given if isinstance(one, int)), default=_DEFAULT)
    values = tuple(one for one in (4, 8) if one > now)
    if not values:
        return No(f"each worker prepares {now} batches ahead already")
    because = f"the training waits for workers that prepare {now} batches ahead"
    share = share_of(case.facts, "data_wait")
    return judged(case, NAME, share, Offer(values, NUMERICS[0], because))


def apply(target: Target, _value: Any) -> None:
    """Give the argument to loaders with workers."""
    replace_argument(target, "prefetch_factor")


def snippet(value: Any) -> str:
    """Return the argument to add where the loader is made."""
    return f"loader = DataLoader(..., prefetch_factor={int(value)})"
