"""Whose optimizer step made which tick, remembered for as long as a cycle may be."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, Final

from hotlap.probe.cycle import closing_optimizer
from hotlap.probe.timeline import BY_OPTIMIZER, Timeline

_MEMORY: Final = 256
_RARE: Final = 100
"""An optimizer that makes less than one tick in so many takes no part in the cycle."""


class Turns:
    """Tells whether the last tick ended a cycle of optimizers."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._begun: deque[tuple[int, int]] = deque(maxlen=_MEMORY)
        self.note = self._begun.append

    def begins(self, ticks: int, optimizer: Any) -> None:
        """Note that an optimizer steps after so many ticks. Cost: 0.1 us."""
        self._begun.append((ticks, id(optimizer)))

    def closed(self) -> bool:
        """Tell it of the timeline's last tick; one that no optimizer made ends a step itself."""
        timeline = self._timeline
        if timeline.rank != BY_OPTIMIZER:
            return True
        # The first that begins after a tick makes the next one: any other begins inside it.
        first = {ticks: one for ticks, one in reversed(self._begun) if ticks < timeline.ticks}
        last = first.get(timeline.ticks - 1)
        counts = Counter(first.values())
        if last is None or len(counts) == 1:
            return True
        order = [first[ticks] for ticks in sorted(first)]
        names: dict[int, int] = {}
        turns = [
            names.setdefault(one, len(names)) for one in order if counts[one] * _RARE >= len(order)
        ]
        return names.get(last, -1) == closing_optimizer(turns)
