"""Reads of a tensor's value by the host: on a device they wait for its queue.

Channel ``tensor_read``: begin's subject = the kind; end's = (kind, type of the tensor's device,
``cpu`` where a read waits for nothing; None for ``torch.cuda.synchronize``).
"""

from __future__ import annotations

import functools
from typing import Any

from hotlap.sites.around import hide_this_frame
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches
from hotlap.sites.tensor_copy import device_type

MODULES = ("torch",)
CHANNELS = ("tensor_read",)
KINDS = {
    "item": "item",
    "cpu": "cpu",
    "numpy": "numpy",
    "tolist": "tolist",
    "__bool__": "bool",
    "__float__": "float",
    "__int__": "int",
    "__format__": "format",
    "__repr__": "repr",
}


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the reading methods of ``torch.Tensor`` and ``torch.cuda.synchronize``."""
    import torch

    for name, kind in KINDS.items():
        wrapped = _wrap(getattr(torch.Tensor, name), kind, hub, torch)
        patches.set("tensor_read", torch.Tensor, name, wrapped)
    synchronize = _wrap(torch.cuda.synchronize, "synchronize", hub, torch)
    patches.set("tensor_read", torch.cuda, "synchronize", synchronize)


def _wrap(original: Any, kind: str, hub: Hub, torch: Any) -> Any:
    channel = hub.channel("tensor_read")
    begin, end = channel.ends()
    fail = channel.fail

    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        token = 0
        if channel.open:
            try:
                token = begin(kind)
            except Exception as error:
                fail(error)
        if not token:
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                hide_this_frame(error)
                raise
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            hide_this_frame(error)
            raise
        finally:
            try:
                end(token, (kind, device_type(torch, args[0] if args else None)))
            except Exception as error:
                fail(error)

    return read
