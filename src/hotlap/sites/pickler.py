"""Hand-over of batches between processes: serialising in the worker, rebuilding in the trainer.

Channels ``pack`` and ``unpack``: subject = None. Both sit on ``ForkingPickler``, which
``multiprocessing`` queues use for every object that crosses them.
"""

from __future__ import annotations

from typing import Any

from hotlap.sites.around import around, nothing
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("pack", "unpack")


def install(hub: Hub, patches: Patches) -> None:
    """Wrap ``ForkingPickler.dumps`` and ``.loads``."""
    from multiprocessing.reduction import ForkingPickler

    packing, unpacking = hub.channel("pack"), hub.channel("unpack")
    if packing:
        plain: Any = ForkingPickler.dumps.__func__  # type: ignore[attr-defined]  # a classmethod
        wrapped = classmethod(around(plain, packing, nothing))
        patches.set("pack", ForkingPickler, "dumps", wrapped)
    if unpacking:
        loads = staticmethod(around(ForkingPickler.loads, unpacking, nothing))
        patches.set("unpack", ForkingPickler, "loads", loads)
