"""Backward passes: ``torch.autograd.backward`` and ``torch.autograd.grad``.

``Tensor.backward``, GradScaler, Lightning and HF Trainer all end in the first.
Channel ``backward``: subject = None.
"""

from __future__ import annotations

from hotlap.sites.around import around, nothing
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("backward",)


def install(hub: Hub, patches: Patches) -> None:
    """Wrap both entry points of the autograd engine."""
    import torch

    channel = hub.channel("backward")
    for name in ("backward", "grad"):
        original = getattr(torch.autograd, name)
        wrapper = around(original, channel, nothing)
        patches.set("backward", torch.autograd, name, channel.hook("backward", original, wrapper))
