"""Checkpoints through libraries: their own entry points, which do more than ``torch.save``.

Channel ``save``: subject = None. A method of a trainer covers all that it does for a checkpoint
(collecting state, writing, removing old ones).
"""

from __future__ import annotations

from typing import Final

from hotlap.sites.around import nothing
from hotlap.sites.entries import Entries, wrap_entries
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

ENTRIES: Final[Entries] = {
    "accelerate.accelerator": (("Accelerator", "save_state"), ("Accelerator", "save_model")),
    "lightning.pytorch.trainer.trainer": (("Trainer", "save_checkpoint"),),
    "pytorch_lightning.trainer.trainer": (("Trainer", "save_checkpoint"),),
    "safetensors.torch": ((None, "save_file"),),
    "torch.distributed.checkpoint": ((None, "save"),),
    "transformers.trainer": (("Trainer", "_save_checkpoint"), ("Trainer", "save_model")),
}

MODULES = tuple(ENTRIES)
CHANNELS = ("save",)


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the entry points of every library that has been imported by now."""
    wrap_entries(ENTRIES, hub.channel("save"), nothing, patches)
