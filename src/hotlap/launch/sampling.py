"""When the machine is sampled while a command runs: at most once a second, ever more rarely."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from hotlap.machine.sampler import Sampler

_FIRST_S: Final = 1.0
_PER_INTERVAL: Final = 200
"""Samples after which the interval doubles: 850 in an hour, 2,000 in two days, 3,000 in 75."""


class Source(Protocol):
    """What gives samples; ``machine.sampler.Sampler`` does."""

    def sample(self) -> dict[str, Any]:
        """Return one sample."""
        ...


class Sampling:
    """Takes a sample of the machine and hands it on, when one is due.

    A tick without a sample costs one reading of a clock. Ticks may come as often as they like.
    """

    def __init__(
        self,
        append: Callable[[dict[str, Any]], None],
        source: Source,
        facts: dict[str, Any] | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """append: writes one sample into the run. facts: what stays the same during the run, put
        into the first sample under ``facts``. clock_s: seconds, never going back."""
        self._append = append
        self._source = source
        self._facts = facts
        self._clock_s = clock_s
        self._due_s = clock_s()
        self.interval_s = _FIRST_S
        self.taken = 0

    @classmethod
    def of_tree(
        cls,
        append: Callable[[dict[str, Any]], None],
        root_pid: int,
        facts: dict[str, Any] | None = None,
    ) -> Sampling:
        """Sample the machine and the processes from ``root_pid`` down: the command's, not ours."""
        return cls(append, Sampler(root_pid), facts)

    def tick(self) -> None:
        """Take a sample if one is due. Raises what the source or ``append`` raises; the next
        sample is then tried after an interval, not at once."""
        now_s = self._clock_s()
        if now_s < self._due_s:
            return
        self._due_s = now_s + self.interval_s
        self._take()

    def last(self) -> None:
        """Take a sample now, whether due or not: the end of the run."""
        self._take()

    def _take(self) -> None:
        sample = self._source.sample()
        if self._facts is not None and self.taken == 0:
            sample = {**sample, "facts": self._facts}
        self.taken += 1
        if self.taken % _PER_INTERVAL == 0:
            self.interval_s *= 2
        self._append(sample)
