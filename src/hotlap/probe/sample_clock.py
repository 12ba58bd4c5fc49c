"""How long each sample of a map-style data set takes to make."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from hotlap.sites.hub import Hub
from hotlap.stats.histogram import bucket


class SampleClock:
    """A histogram of the samples' times. Cost: 1.5 us per sample.

    Where a data set makes whole batches, the batch's time is divided evenly by its samples.
    """

    def __init__(self) -> None:
        self._collate_ns = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything: this is another process."""
        self._histogram: dict[int, int] = {}
        self.count = 0
        self._total_ns = 0
        self._slowest_ns = 0
        self._together = 0

    def attach(self, hub: Hub) -> None:
        """Subscribe to the site that tells of samples."""
        hub.subscribe("sample", self.begins, self.ended)
        hub.subscribe("collate", self.collating)

    def begins(self, _: int) -> int:
        """A sample, or a batch of them, is being made."""
        self._collate_ns = 0
        return perf_counter_ns()

    def collating(self, _: Any) -> int:
        """Samples are put together: a batch that was made at once was finished here."""
        self._collate_ns = perf_counter_ns()
        return 0

    def ended(self, begun: int, samples: int) -> None:
        """It is there."""
        end = perf_counter_ns()
        if samples != 1:
            self._together += samples
            end = self._collate_ns or end
        took = end - begun
        one = took // samples if samples > 1 else took
        place = bucket(one)
        self._histogram[place] = self._histogram.get(place, 0) + max(1, samples)
        self.count += max(1, samples)
        self._total_ns += took
        self._slowest_ns = max(self._slowest_ns, one)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form. together: samples of which only the batch's time is known."""
        return {
            "count": self.count,
            "total_ns": self._total_ns,
            "slowest_ns": self._slowest_ns,
            "together": self._together,
            "histogram": {str(one): count for one, count in self._histogram.copy().items()},
        }
