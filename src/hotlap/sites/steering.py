"""Below the observers of data loaders: who may give other batches than the loader's own.

The sites observe, and change nothing; a trial also steers. What is put here must be put before
the sites are installed: their wrappers then take it for torch's own, so what is steered passes
through the same accounts as everything else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotlap.sites.around import hide_this_frame
from hotlap.sites.patches import Patches

Gives = Callable[[], Any]


@dataclass(frozen=True)
class Own:
    """torch's own functions, as they were: what is called through them nobody observes."""

    init: Callable[..., None]
    iter: Callable[[Any], Any]
    next: Callable[[Any], Any]


def steer_loaders(
    patches: Patches,
    before: Callable[[Any], Gives | None],
    after: Callable[[Any, Any], None],
    begun: Callable[[Any, Callable[[Any], Any]], Any],
) -> Own:
    """Put the three functions under every DataLoader; return what they stand in front of.

    before: called with an iterator that is asked for a batch; returns what gives the batch in
        place of it, or None. after: called with the iterator and the batch.
    begun: called with a loader and torch's ``__iter__``; returns the iterator.
    What they raise reaches the training: they must raise only what they mean to.
    """
    from torch.utils.data import dataloader as place

    loader_class, iterator_class = place.DataLoader, place._BaseDataLoaderIter
    own = Own(loader_class.__init__, loader_class.__iter__, iterator_class.__next__)
    own_next, own_iter = own.next, own.iter

    @functools.wraps(own_next)
    def __next__(self: Any) -> Any:
        try:
            given = before(self)
            batch = own_next(self) if given is None else given()
        except BaseException as error:
            hide_this_frame(error)
            raise
        after(self, batch)
        return batch

    @functools.wraps(own_iter)
    def __iter__(self: Any) -> Any:
        try:
            return begun(self, own_iter)
        except BaseException as error:
            hide_this_frame(error)
            raise

    patches.set("steering", iterator_class, "__next__", __next__)
    patches.set("steering", loader_class, "__iter__", __iter__)
    return own
