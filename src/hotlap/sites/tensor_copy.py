"""Copies between devices: ``Tensor.to``, ``.cuda`` and ``.copy_``.

Channel ``tensor_copy``: begin's subject = None; end's subject = (source, result), both tensors.
Not installed on a build of torch that knows no device but the host: nothing can move there.
"""

from __future__ import annotations

import functools
from typing import Any

from hotlap.sites.around import hide_this_frame
from hotlap.sites.hub import Channel, Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("tensor_copy",)


def has_device_build(torch: Any) -> bool:
    """Tell whether this build of torch can use an accelerator, without initialising one."""
    return bool(
        torch.version.cuda
        or torch.version.hip
        or getattr(torch.version, "xpu", None)
        or torch.backends.mps.is_built()
    )


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the copying methods of ``torch.Tensor``."""
    import torch

    if not has_device_build(torch):
        return
    channel = hub.channel("tensor_copy")
    for name in ("to", "cuda"):
        wrapped = _wrap(getattr(torch.Tensor, name), channel, into=False)
        patches.set("tensor_copy", torch.Tensor, name, wrapped)
    copying = _wrap(torch.Tensor.copy_, channel, into=True)
    patches.set("tensor_copy", torch.Tensor, "copy_", copying)


def _wrap(original: Any, channel: Channel, into: bool) -> Any:
    begin, end = channel.ends()
    fail = channel.fail

    @functools.wraps(original)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = 0
        if channel.open:
            try:
                token = begin(None)
            except Exception as error:
                fail(error)
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            hide_this_frame(error)
            raise
        if token:
            try:
                # `a.copy_(b)` moves b into a; `a.to(device)` moves a into the result.
                end(token, (args[0] if into and args else self, result))
            except Exception as error:
                fail(error)
        return result

    return copy
