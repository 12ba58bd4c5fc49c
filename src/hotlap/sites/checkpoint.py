"""Checkpoints through ``torch.save``.

Channel ``save``: subject = the target (second positional argument) or None.
"""

from __future__ import annotations

import sys
from typing import Any

from hotlap.sites.around import around
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("save",)


def _target(args: tuple[Any, ...]) -> Any:
    return args[1] if len(args) > 1 else None


def install(hub: Hub, patches: Patches) -> None:
    """Wrap ``torch.save`` under both of its names."""
    import torch

    wrapped = around(torch.save, hub.channel("save"), _target)
    patches.set("save", torch, "save", wrapped)
    patches.set("save", sys.modules["torch.serialization"], "save", wrapped)
