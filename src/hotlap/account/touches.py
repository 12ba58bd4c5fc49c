"""Reads of tensors, prints, saves and copies: how often in a step, and how long."""

from __future__ import annotations

from hotlap.values.record import Process
from hotlap.values.summary import TouchSummary


def summarise_touches(process: Process, steps: int, wall_ns: int) -> tuple[TouchSummary, ...]:
    """Return the touches of a process, those that took longest first.

    Args:
        process: whose touches.
        steps: steps of the whole run, which the counts are divided by.
        wall_ns: time of all steps together, which the shares are of. Checkpoints are taken out
            of the steps, so they have none.
    """
    found = [
        TouchSummary(
            family=touch.family,
            kind=touch.kind,
            place=touch.place,
            count=touch.count,
            per_step=touch.count / steps if steps else None,
            ns_per_step=touch.ns / steps if steps else None,
            share=touch.ns / wall_ns if wall_ns and touch.family != "checkpoint" else None,
        )
        for touch in sorted(process.touches, key=lambda touch: (-touch.ns, -touch.count))
    ]
    return tuple(found)
