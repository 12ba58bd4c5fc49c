"""Preparing one batch, in a loader worker or (at 0 workers) in the training thread.

Channels: ``fetch``: subject = (fetcher, indices); ``collate``: subject = None.
The class names are private to torch, so each is looked for and left alone if it is gone.
"""

from __future__ import annotations

import functools
from typing import Any

from hotlap.sites.around import around, nothing
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("fetch", "collate")


def install(hub: Hub, patches: Patches) -> None:
    """Wrap ``fetch`` of both fetchers, and the collate function that a fetcher is given."""
    from torch.utils.data._utils import fetch as place

    channel = hub.channel("fetch")
    if channel:
        for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
            fetcher = getattr(place, name)
            wrapped = around(fetcher.fetch, channel, lambda args: args)
            patches.set("fetch", fetcher, "fetch", channel.hook("fetch", fetcher.fetch, wrapped))
    collating = hub.channel("collate")
    if collating:
        base = place._BaseDatasetFetcher
        original = base.__init__

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            # The fetcher is private to one iterator: the user's function itself is not touched.
            if collating.open and callable(self.collate_fn):
                self.collate_fn = _timed(self.collate_fn, collating)

        patches.set("collate", base, "__init__", __init__)


def _timed(collate: Any, channel: Any) -> Any:
    try:
        return channel.hook("collate", collate, around(collate, channel, nothing))
    except Exception as error:
        channel.fail(error)
        return collate
