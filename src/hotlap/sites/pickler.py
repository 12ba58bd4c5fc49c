"""Hand-over of batches between processes: serialising in the worker, rebuilding in the trainer.

Channels ``pack`` and ``unpack``: subject = None. Both sit on ``ForkingPickler``, which
``multiprocessing`` queues use for every object that crosses them. ``pack`` is told in loader
workers only: a training process packs indices and file descriptors, several times a batch.
"""

from __future__ import annotations

import functools
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
        wrapped: Any = classmethod(_in_workers(plain, around(plain, packing, nothing)))
        patches.set("pack", ForkingPickler, "dumps", wrapped)
    if unpacking:
        loads = staticmethod(around(ForkingPickler.loads, unpacking, nothing))
        patches.set("unpack", ForkingPickler, "loads", loads)


def _in_workers(plain: Any, told: Any) -> Any:
    from torch.utils.data import get_worker_info
    from torch.utils.data._utils import worker

    here = worker if hasattr(worker, "_worker_info") else None

    @functools.wraps(plain)
    def dumps(*args: Any, **kwargs: Any) -> Any:
        # The variable that get_worker_info returns, without the call; private, so it may be gone.
        info = here._worker_info if here is not None else get_worker_info()
        return plain(*args, **kwargs) if info is None else told(*args, **kwargs)

    return dumps
