"""Backward passes: ``torch.autograd.backward`` and ``torch.autograd.grad``.

``Tensor.backward``, GradScaler, Lightning and HF Trainer all end in the first.
Channel ``backward``: subject = what is differentiated, a tensor or several; None where it was given
by name.
"""

from __future__ import annotations

import sys
from typing import Any

from hotlap.sites.around import around, first
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
        wrapper = around(original, channel, first)
        hook = channel.hook("backward", original, wrapper)
        patches.set("backward", torch.autograd, name, hook)
        _tell_torchscript(patches, original, (wrapper, hook))


def _tell_torchscript(patches: Patches, original: Any, ours: tuple[Any, ...]) -> None:
    """Let TorchScript compile what stands for ``original`` to its operator, as it does that one.

    It knows these functions by their ids: in a list, and once it has compiled, in a table.
    """
    script = sys.modules.get("torch.jit._builtins")
    listed = getattr(script, "_builtin_ops", None)
    if not isinstance(listed, list):
        return
    operator = next((name for function, name in listed if function is original), None)
    if operator is None:
        return
    entries = [(one, operator) for one in ours]
    listed.extend(entries)
    table = getattr(script, "_builtin_table", None)
    if table is not None:
        table.update({id(one): operator for one in ours})

    def undo() -> None:
        listed[:] = [one for one in listed if not any(one is entry for entry in entries)]
        for one in ours:
            (getattr(script, "_builtin_table", None) or {}).pop(id(one), None)

    patches.later("backward", undo)
