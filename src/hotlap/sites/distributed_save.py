"""Checkpoints through ``torch.distributed.checkpoint``. Channel ``save``."""

from __future__ import annotations

import sys

from hotlap.sites.around import around, nothing
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULE = "torch.distributed.checkpoint"
CHANNELS = ("save",)


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the package's ``save``; ``async_save`` runs in its own thread and is not waited for."""
    place = sys.modules[MODULE]
    patches.set("save", place, "save", around(place.save, hub.channel("save"), nothing))
