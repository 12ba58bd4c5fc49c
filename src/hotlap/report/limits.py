"""The ceilings of a training, and the loader's rate over its workers, ready to be shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hotlap.stats.knee import knee as stats_knee
from hotlap.values.facts import Facts, Measured, Missing, Storage, WorkerPoint

CEILINGS: Final = {
    "compute_per_s": ("compute", "the steps with batches at hand, nothing to load"),
    "loader_per_s": ("loader", "the loader alone, as it is set up"),
    "prep_per_s": ("preparing", "the loader, if nothing it reads had to be waited for"),
    "fetch_per_s": ("fetching", "the reading alone, samples per second of waiting"),
}
"""Per field of ``Facts``: what a ceiling is called, and what it is."""


@dataclass(frozen=True)
class Limit:
    """One rate in samples per second. rate None: not measured, for the reason ``because``."""

    key: str
    name: str
    says: str
    rate: float | None
    low: float | None
    high: float | None
    origin: str
    because: str | None


@dataclass(frozen=True)
class StorageRates:
    """What one reader reaches, in samples per second: from storage, and from the page cache.

    cold_blocked, warm_blocked: shares (0-1) of that time in which it waited.
    """

    samples: int
    files: int
    file_bytes: int
    cold: float
    warm: float
    cold_blocked: float
    warm_blocked: float
    read_bytes: int | None


def storage_rates(facts: Facts) -> StorageRates | None:
    """Return the rates of a comparison of cold and warm samples; None where there was none."""
    if not isinstance(facts.storage, Measured):
        return None
    seen: Storage = facts.storage.value
    cold_ns, warm_ns = max(1, seen.cold_ns), max(1, seen.warm_ns)
    return StorageRates(
        seen.samples,
        seen.files,
        seen.file_bytes,
        seen.samples * 1e9 / cold_ns,
        seen.samples * 1e9 / warm_ns,
        seen.cold_blocked_ns / cold_ns,
        seen.warm_blocked_ns / warm_ns,
        seen.read_bytes,
    )


def limits(facts: Facts) -> list[Limit]:
    """Return the ceilings in the order in which reports show them."""
    return [_limit(key, name, says, getattr(facts, key)) for key, (name, says) in CEILINGS.items()]


def _limit(key: str, name: str, says: str, found: Measured[float] | Missing) -> Limit:
    if isinstance(found, Missing):
        return Limit(key, name, says, None, None, None, "", found.because)
    return Limit(key, name, says, found.value, found.low, found.high, found.origin, None)


def knee(curve: Sequence[WorkerPoint]) -> int | None:
    """Return the fewest workers that are nearly as fast as the best number of them.

    None when fewer than two numbers of workers were tried.
    """
    if len(curve) < 2:
        return None
    return stats_knee([(point.workers, point.per_s) for point in curve])
