"""Lines whose time lies in one phase by the clock, and belongs to another by what they do."""

from __future__ import annotations

import re
from typing import Final

from hotlap.diagnose.costs import Cost

_BUFFERS: Final = "DistributedDataParallel._distributed_broadcast_coalesced"
_WRITES: Final = re.compile(
    r"\b(dump|save|savez\w*|savetxt|tofile|to_(csv|json|parquet|pickle|hdf|feather)|export\w*|"
    r"write\w*|save_\w+)\("
)
"""Calls that write what is given to them into a file."""


def sends_buffers(cost: Cost) -> bool:
    """Tell whether a line mostly waits for DDP to send the buffers of a module."""
    inside = sum(ns for leaf, ns in cost.leaves if _BUFFERS in leaf)
    return inside >= 0.5 * sum(ns for _, ns in cost.leaves) > 0


def saves_beside(cost: Cost) -> bool:
    """Tell whether a line writes files where no step runs: in evaluation, or between epochs.

    Many leave the model in its evaluation mode while they save it, in formats of their own.
    """
    return cost.phase in ("evaluation", "epoch_edge") and any(
        _WRITES.search(text) for text, ns in cost.expressions if 2 * ns >= cost.own_ns
    )
