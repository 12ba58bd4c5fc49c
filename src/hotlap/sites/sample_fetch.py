"""Making the samples of one batch of a map-style data set, one by one where it does so.

Channel ``sample``: subject = the number of samples that are made: 1, or, where the data set makes a
batch at once (``__getitems__``, or no batches of torch's), all of them; the end is then that of
``fetch``, collating included. Nobody listens in a plain run.

The data set is not touched: the fetcher asks for one sample after the other while it goes through
its list of indices, so a list that tells when it goes on tells when a sample was made.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from hotlap.sites.around import hide_this_frame
from hotlap.sites.hub import Channel, Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("sample",)


class _Told(list[Any]):
    """Indices of a batch; going on to the next one tells that a sample was made."""

    channel: Channel

    def __iter__(self) -> Iterator[Any]:
        begin, end = self.channel.ends()
        for index in list.__iter__(self):
            token = 0
            try:
                token = begin(1) if self.channel.open else 0
            except Exception as error:
                self.channel.fail(error)
            yield index
            try:
                if token:
                    end(token, 1)
            except Exception as error:
                self.channel.fail(error)


def install(hub: Hub, patches: Patches) -> None:
    """Wrap ``fetch`` of the fetcher of map-style data sets."""
    from torch.utils.data import Subset
    from torch.utils.data._utils import fetch as place

    channel = hub.channel("sample")
    if not channel:
        return
    fetcher = place._MapDatasetFetcher
    original = fetcher.fetch
    begin, end = channel.ends()

    @functools.wraps(original)
    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        token, number, given = 0, 1, possibly_batched_index
        try:
            if channel.open:
                if self.auto_collation and _one_by_one(self.dataset, Subset):
                    if type(given) is list:
                        given = _Told(given)
                        given.channel = channel
                else:
                    number = len(given) if isinstance(given, list) else 1
                    token = begin(number)
        except Exception as error:
            channel.fail(error)
        try:
            return original(self, given)
        except BaseException as error:
            hide_this_frame(error)
            raise
        finally:
            try:
                if token:
                    end(token, number)
            except Exception as error:
                channel.fail(error)

    patches.set("sample", fetcher, "fetch", fetch)


def _one_by_one(dataset: Any, subset: Any) -> bool:
    """Tell whether samples are made one by one while the fetcher goes through its indices."""
    for _ in range(8):
        if type(dataset) is not subset:
            return not (hasattr(dataset, "__getitems__") and dataset.__getitems__)
        dataset = dataset.dataset
    return False
