"""Checkpoints through libraries: their own entry points, which do more than ``torch.save``.

Channel ``save``: subject = None. A method of a trainer covers all that it does for a checkpoint
(collecting state, writing, removing old ones).
"""

from __future__ import annotations

import sys
from typing import Final

from hotlap.sites.around import around, nothing
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

ENTRIES: Final[dict[str, tuple[tuple[str | None, str], ...]]] = {
    "accelerate.accelerator": (("Accelerator", "save_state"), ("Accelerator", "save_model")),
    "lightning.pytorch.trainer.trainer": (("Trainer", "save_checkpoint"),),
    "pytorch_lightning.trainer.trainer": (("Trainer", "save_checkpoint"),),
    "safetensors.torch": ((None, "save_file"),),
    "torch.distributed.checkpoint": ((None, "save"),),
    "transformers.trainer": (("Trainer", "_save_checkpoint"), ("Trainer", "save_model")),
}
"""Module: class (None: the module itself) and function. Those that are missing are left out."""

MODULES = tuple(ENTRIES)
CHANNELS = ("save",)


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the entry points of every library that has been imported by now."""
    channel = hub.channel("save")
    for module, entries in ENTRIES.items():
        place = sys.modules.get(module)
        for owner_name, name in entries:
            owner = place if owner_name is None else getattr(place, owner_name, None)
            original = vars(owner).get(name) if owner is not None else None
            if original is not None and not patches.hold(owner, name):
                patches.set("save", owner, name, around(original, channel, nothing))
