"""DataLoaders: their creation, the start of an iteration, and the wait for each batch.

Channels:
``loader_created``: subject = the loader; told when its constructor has returned.
``loader_iter``: subject = [loader, iterator or None]; the iterator is there at the end.
``batch``: subject = the iterator.
``exhausted``: subject = the iterator; told before the end of ``batch`` when there was none left.
"""

from __future__ import annotations

import functools
from typing import Any

from hotlap.sites.around import around, first, hide_this_frame
from hotlap.sites.hub import Channel, Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("loader_created", "loader_iter", "batch", "exhausted")


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the constructor, ``__iter__`` and the iterators' ``__next__``."""
    from torch.utils.data import dataloader as place

    created = hub.channel("loader_created")
    if created:
        wrapped = around(place.DataLoader.__init__, created, first)
        patches.set("loader_created", place.DataLoader, "__init__", wrapped)
    if hub.channel("loader_iter"):
        _wrap_iter(hub.channel("loader_iter"), place.DataLoader, patches)
    if hub.channel("batch"):
        _wrap_next(hub, place._BaseDataLoaderIter, patches)


def _wrap_iter(channel: Channel, loader_class: Any, patches: Patches) -> None:
    begin, end = channel.ends()
    fail = channel.fail
    original = loader_class.__iter__

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        if not channel.open:
            return original(self)
        subject = [self, None]
        token = 0
        try:
            token = begin(subject)
        except Exception as error:
            fail(error)
        try:
            subject[1] = original(self)
            return subject[1]
        except BaseException as error:
            hide_this_frame(error)
            raise
        finally:
            try:
                end(token, subject)
            except Exception as error:
                fail(error)

    patches.set("loader_iter", loader_class, "__iter__", __iter__)


def _wrap_next(hub: Hub, iterator_class: Any, patches: Patches) -> None:
    channel = hub.channel("batch")
    begin, end = channel.ends()
    fail = channel.fail
    exhausted_channel = hub.channel("exhausted")
    exhausted, _ = exhausted_channel.ends() if exhausted_channel else (lambda _: None, None)
    original = iterator_class.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        if not channel.open:
            return original(self)
        token = 0
        try:
            token = begin(self)
        except Exception as error:
            fail(error)
        try:
            return original(self)
        except BaseException as error:
            hide_this_frame(error)
            if isinstance(error, StopIteration):
                try:
                    exhausted(self)
                except Exception as ours:
                    exhausted_channel.fail(ours)
            raise
        finally:
            if token:
                try:
                    end(token, self)
                except Exception as error:
                    fail(error)

    hook: Any = channel.hook("next", original, __next__, exhausted, exhausted_channel.fail)
    patches.set("batch", iterator_class, "__next__", hook)
    if "next" in vars(iterator_class):
        patches.set("batch", iterator_class, "next", hook)
