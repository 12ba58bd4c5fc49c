"""Which optimizer's step ends a cycle, when several take turns.

A GAN steps D then G: two ticks, one cycle. With n critic steps the order is D D … D G: the cycle
ends at the optimizer that steps least often. Ties (D G D G) go to the one after which the
optimizer seen first steps again.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise
from typing import Final

_MEMORY: Final = 512
_SETTLED: Final = 64


class Cycle:
    """Learn the cycle from the order of ticks; one optimizer alone closes at each tick."""

    def __init__(self) -> None:
        self._seen: deque[int] = deque(maxlen=_MEMORY)
        self._known: set[int] = set()
        self._closer: int | None = None
        self._until_review = 0

    def closes(self, optimizer: int) -> bool:
        """Take in the next tick and tell whether it ends a cycle, as far as is known by now."""
        if optimizer not in self._known:
            # A new optimizer: another turn in the cycle, or another training. Learn afresh.
            self._known.add(optimizer)
            self._seen.clear()
            self._until_review = 0
        self._seen.append(optimizer)
        self._until_review -= 1
        if self._until_review <= 0:
            self._closer = closing_optimizer(self._seen)
            self._until_review = 1 if len(self._seen) < _SETTLED else _SETTLED
        return optimizer == self._closer


def closing_optimizer(order: deque[int] | list[int] | tuple[int, ...]) -> int | None:
    """Return the optimizer whose step ends a cycle in a sequence of ordinals; None if empty.

    The incomplete cycle at the end is left out when several cycles have been seen.
    """
    if not order:
        return None
    counts = Counter(order)
    rarest = min(counts.values())
    # One step more or less is the cut of the sequence, not a rarer optimizer.
    several = rarest > 1 or sum(count == rarest for count in counts.values()) > 1
    candidates = {one for one, count in counts.items() if count <= rarest + several}
    if len(candidates) == 1:
        return candidates.pop()
    first = min(candidates)
    ends = Counter(
        before
        for before, after in _neighbours([one for one in order if one in candidates])
        if after == first and before != first
    )
    if ends:
        return ends.most_common(1)[0][0]
    return order[-1]


def _neighbours(order: list[int]) -> list[tuple[int, int]]:
    return list(pairwise(order))
