"""Collectives that the script calls itself, and those with which DDP sends a module's buffers.

Channel ``collective``: subject = the name. DDP's own reduction runs in C++ inside backward and
is not seen here.
"""

from __future__ import annotations

from typing import Any

from hotlap.sites.around import around
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("collective",)
NAMES = (
    "_broadcast_coalesced",
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
)


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the collectives under both of their names, where this build has them."""
    import torch

    if not torch.distributed.is_available():
        return
    from torch.distributed import distributed_c10d as place

    channel = hub.channel("collective")
    for name in NAMES:
        for module in (place, torch.distributed):
            original = getattr(module, name, None)
            if original is not None:
                wrapped = around(original, channel, _constant(name))
                patches.set("collective", module, name, wrapped)


def _constant(name: str) -> Any:
    def pick(args: tuple[Any, ...]) -> str:  # noqa: ARG001 - the signature of a subject picker
        return name

    return pick
