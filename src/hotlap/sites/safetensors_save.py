"""Checkpoints through safetensors: ``safetensors.torch.save_file``. Channel ``save``."""

from __future__ import annotations

import sys

from hotlap.sites.around import around
from hotlap.sites.checkpoint import _target
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULE = "safetensors.torch"
CHANNELS = ("save",)


def install(hub: Hub, patches: Patches) -> None:
    """Wrap ``save_file`` (``save_model`` ends in it)."""
    place = sys.modules[MODULE]
    patches.set("save", place, "save_file", around(place.save_file, hub.channel("save"), _target))
