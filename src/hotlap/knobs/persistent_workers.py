"""# persistent_workers: workers stay from epoch to epoch

**What.** `persistent_workers=True`: the loader's processes are not ended and started again at each
epoch. The training waits for the first batches of the first epoch only.

torch draws a seed for its workers when it starts them. With workers that stay it would not draw
from the second epoch on, and the script's later random numbers, so the order of its samples, would
be others. The knob draws the seed all the same.

**Where it helps.** Loaders with workers and short epochs, where the edge of an epoch takes time.

**What else it changes.** Nothing where the data set draws no random numbers; else its draws of
later epochs. What a worker has cached in its data set stays from epoch to epoch, and what the
training process changes in its own copy is not seen by workers.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from hotlap.knobs.loader_argument import numerics_of, replace_argument, workers_of
from hotlap.knobs.offers import is_settled, judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "persistent_workers"
PHASE: Final = "epoch_edge"
NUMERICS: Final = ("identical", "resampled")
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it to loaders with workers that do not stay."""
    if not workers_of(case):
        return No("no loader with workers feeds the training")
    if is_settled(case.facts, ("persistent_workers",), True):
        return No("the script has set it already")
    because = "workers are started anew at each epoch"
    share = share_of(case.facts, "epoch_edge")
    return judged(case, NAME, share, Offer((True,), numerics_of(case), because))


def apply(target: Target, value: Any) -> None:
    """Give the argument to loaders with workers, and draw the seeds that torch would draw."""
    if value:
        _draw_seeds(target)
    replace_argument(target, "persistent_workers")


def _draw_seeds(target: Target) -> None:
    """At each epoch but the first, draw as the making of a new iterator would."""
    torch = sys.modules["torch"]
    place = sys.modules["torch.utils.data.dataloader"]
    iterator = getattr(place, "_MultiProcessingDataLoaderIter", None)
    if iterator is None or not hasattr(iterator, "_reset"):
        target.note("this torch goes to the next epoch in another way: later orders may differ")
        return
    own = iterator._reset

    @functools.wraps(own)
    def _reset(self: Any, loader: Any, first_iter: bool = False) -> Any:
        if not first_iter:
            # As in _BaseDataLoaderIter.__init__: a sampler may draw when it is asked to begin.
            iter(self._index_sampler)
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
        return own(self, loader, first_iter)

    target.replace(iterator, "_reset", _reset)


def snippet(value: Any) -> str:
    """Return the argument to add where the loader is made."""
    return f"loader = DataLoader(..., persistent_workers={bool(value)})"
