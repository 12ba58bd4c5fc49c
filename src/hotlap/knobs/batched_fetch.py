"""# batched_fetch: a batch is taken by one index, not sample by sample

**What.** A DataLoader asks its data set for one sample after the other and then puts them together.
Where a sample is nothing but rows of tensors or arrays, one index takes all rows of a batch at
once, and there is nothing to put together.

Done for `TensorDataset`, and for data sets whose `__getitem__` does no more than take rows by its
index, as its byte code tells; also within a `Subset`; with torch's default collate function only.
The first batches are made in both ways and compared bit for bit; only then is the new one taken.

**Where it helps.** Small samples in memory: tables, series, small pictures, where preparing one
takes microseconds.

**What else it changes.** Nothing: the same batches in the same order.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from hotlap.knobs.batched_rows import Rows, are_the_same
from hotlap.knobs.offers import judged, named_by, no_variables
from hotlap.knobs.plain_samples import NoPlan, bottom_of, plan_of
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of, training_loader

NAME: Final = "batched_fetch"
PHASE: Final = "data_wait"
NUMERICS: Final = ("identical",)
environment = no_variables
PROOFS: Final = 3
"""Batches that are made in both ways before one is given that was made in the new one."""
_COLLATE: Final = "_hotlap_collate"
_PLAIN_NS: Final = 100_000
"""A sample that takes longer is no row of an array."""


def applies(case: Case) -> Offer | No:
    """Offer it for loaders whose samples are small; it proves itself in the training."""
    loader = training_loader(case.facts)
    if loader is None:
        return No("no DataLoader feeds the training")
    if loader.iterable:
        return No("its data set is a stream, which has no index")
    middle = (case.facts.sample_ns or {}).get("p50")
    if middle is not None and middle > _PLAIN_NS and named_by(case, NAME) is None:
        return No(f"a sample takes {middle / 1000:.0f} us: it is no mere row of an array")
    because = f"samples of {loader.dataset} are taken one by one"
    share = share_of(case.facts, "data_wait")
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Let fetchers of map-style data sets take batches at once where that is the same."""
    if not value:
        return
    place = sys.modules["torch.utils.data"]._utils.fetch
    base, fetcher = place._BaseDatasetFetcher, place._MapDatasetFetcher
    own_init, own_fetch = base.__init__, fetcher.fetch
    ways: dict[int, _Way] = {}

    @functools.wraps(own_init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        own_init(self, *args, **kwargs)
        # As the script gave it: observers put their own in its place.
        vars(self)[_COLLATE] = self.collate_fn

    @functools.wraps(own_fetch)
    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        if not self.auto_collation or not isinstance(possibly_batched_index, list):
            return own_fetch(self, possibly_batched_index)
        way = ways.get(id(self.dataset))
        if way is None or way.dataset() is not self.dataset:
            way = ways[id(self.dataset)] = _Way(target, self.dataset, vars(self).get(_COLLATE))
        return way.fetch(lambda: own_fetch(self, possibly_batched_index), possibly_batched_index)

    target.replace(base, "__init__", __init__)
    target.replace(fetcher, "fetch", fetch)


class _Way:
    """How batches of one data set are taken: in both ways at first, then in one of them."""

    def __init__(self, target: Target, dataset: Any, collate: Any) -> None:
        self._target = target
        self._name = type(dataset).__name__
        self._proofs = 0
        self._plan: Any = None
        self.dataset = _reference(dataset)
        try:
            bottom, _ = bottom_of(dataset)
            self._name = type(bottom).__name__
            self._code = _code_of(bottom)
            if collate is not sys.modules["torch"].utils.data.default_collate:
                raise NoPlan("its batches are put together by a function of the script's")
            self._plan = plan_of(bottom)
        except Exception as error:
            self._leave(str(error) or type(error).__name__)

    def fetch(self, own: Callable[[], Any], given: list[Any]) -> Any:
        """Return the batch. own: makes it in torch's way."""
        if self._plan is None:
            return own()
        if self._proofs >= PROOFS:
            batch = self._taken(given)
            if batch is None:
                return own()
            self._target.acted(
                f"batches of {self._name} were taken by one index, after {PROOFS} were the same"
            )
            return batch
        batch = own()
        taken = self._taken(given)
        if taken is not None:
            if are_the_same(batch, taken):
                self._proofs += 1
            else:
                self._leave("a batch taken by one index was not the same")
        return batch

    def _taken(self, given: list[Any]) -> Any:
        """Return the batch taken by one index; None where it cannot be."""
        try:
            bottom, around = bottom_of(self.dataset())
            if _code_of(bottom) is not self._code:
                raise NoPlan("its __getitem__ has been replaced")
            # A slice of a list, since going through an observed one is told to its observer.
            indices = given[:]
            for subset in around:
                indices = [subset.indices[one] for one in indices]
            if not indices or set(map(type, indices)) != {int}:
                return None
            if min(indices) < 0 or max(indices) >= len(bottom):
                return None
            return Rows(bottom, indices).batch(self._plan)
        except Exception as error:
            self._leave(str(error) or type(error).__name__)
            return None

    def _leave(self, because: str) -> None:
        self._plan = None
        self._target.note(f"{self._name} was left as it is: {because}"[:300])


def _reference(dataset: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(dataset)
    except TypeError:  # of a class that allows no such references
        return lambda: dataset


def _code_of(dataset: Any) -> Any:
    return getattr(type(dataset).__getitem__, "__code__", None)


def snippet(_value: Any) -> str:
    """Return a loader whose sampler gives whole batches of indices to the data set."""
    return (
        "sampler = BatchSampler(RandomSampler(dataset), batch_size=64, drop_last=False)\n"
        "loader = DataLoader(dataset, sampler=sampler, batch_size=None)  # dataset[list of indices]"
    )
