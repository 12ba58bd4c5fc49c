"""The rates that the parts of a training would reach alone, from the windows of a trial.

The pipeline runs at the least of them (DS-Analyzer: Mohan et al., "Analyzing and Mitigating Data
Stalls in DNN Training", VLDB 2021): the model on batches that are there (G), the loader with
nobody who makes it wait (L), and of the loader its two halves: preparing samples when nothing
blocks (P), and waiting for storage, locks and the like when preparing costs nothing (F). DS-
Analyzer takes P and F from runs with a warm and a cold page cache; here they come from the split
of the workers' own time, of the same batches that give L.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hotlap.stats.rates import Rate, rate
from hotlap.values.facts import Measured, Missing, WorkerPoint
from hotlap.values.phase import ACCOUNTS, STEP_PHASES
from hotlap.values.record import Fetches
from hotlap.values.trial import WindowResult

_DATA_WAIT: Final = ACCOUNTS.index("data_wait")
_PARTS: Final = len(STEP_PHASES)
REPLAY: Final = "replay window of the ceilings trial"
DRAIN: Final = "drain window of the ceilings trial"

Ceiling = Measured[float] | Missing


@dataclass(frozen=True)
class Ceilings:
    """Samples per second, under the names that ``values.facts.Facts`` has for them."""

    compute_per_s: Ceiling
    loader_per_s: Ceiling
    prep_per_s: Ceiling
    fetch_per_s: Ceiling


def ceilings(
    windows: Iterable[WindowResult],
    workers: int,
    cores: float | None = None,
    fetches: Sequence[Fetches] = (),
) -> Ceilings:
    """Return the ceilings that the windows of one process show.

    windows: of a trial, in any order. workers: of the training loader. cores: that its workers may
    use, None for as many as there are workers. fetches: the process's records of its loaders;
    they give P and F their intervals.
    """
    found = list(windows)
    return Ceilings(
        compute_per_s=compute_per_s(_of_kind(found, "replay")),
        loader_per_s=loader_per_s(_of_kind(found, "drain"), workers),
        prep_per_s=prep_per_s(_of_kind(found, "drain"), workers, cores, fetches),
        fetch_per_s=fetch_per_s(_of_kind(found, "drain"), workers, fetches),
    )


def curve(windows: Iterable[WindowResult]) -> tuple[WorkerPoint, ...]:
    """Return the loader's rate by workers, from the ``workers`` windows that measured one."""
    points = []
    for one in windows:
        if one.kind != "workers" or one.workers is None:
            continue
        alone = _loader_rate(one, one.workers)
        if alone is not None:
            low = alone.per_s if alone.low is None else alone.low
            high = alone.per_s if alone.high is None else alone.high
            points.append(WorkerPoint(one.workers, alone.per_s, low, high))
    return tuple(sorted(points, key=lambda point: point.workers))


def compute_per_s(window: WindowResult | Missing) -> Ceiling:
    """Return G: samples per second of the steps whose batches were there at once."""
    if isinstance(window, Missing):
        return window
    if window.samples is None or not window.batches:
        return Missing(_no_samples(window))
    steps_ns = sum(window.accounts[:_PARTS]) - window.accounts[_DATA_WAIT]
    if steps_ns <= 0 or not window.step_ns:
        return Missing("no step was measured on replayed batches")
    # Steps may be a sample of all; the waits that a replay has are not the model's.
    share = steps_ns / sum(window.accounts[:_PARTS])
    each = window.samples / max(1, window.steps)
    spread = rate([(each, round(ns * share)) for ns in window.step_ns])
    per_s = window.samples * 1e9 / steps_ns
    return _measured(per_s, spread, REPLAY)


def loader_per_s(window: WindowResult | Missing, workers: int) -> Ceiling:
    """Return L: samples per second that the loader gives when it is asked at once."""
    if isinstance(window, Missing):
        return window
    found = _loader_rate(window, workers)
    if found is None:
        return Missing(_no_samples(window))
    return _measured(found.per_s, found, DRAIN)


def prep_per_s(
    window: WindowResult | Missing,
    workers: int,
    cores: float | None = None,
    fetches: Sequence[Fetches] = (),
) -> Ceiling:
    """Return P: samples per second if nothing blocked.

    Each worker then spends its CPU time and its wait for a core; and all workers together are
    bound by the cores that there are.
    """
    parts = _split(window)
    if isinstance(parts, Missing):
        return parts
    busy = parts.wall_ns - parts.blocked_ns
    if busy <= 0:
        return Missing("preparing a sample took no time that could be measured")
    at_once = max(1, workers)
    per_s = at_once * parts.samples * 1e9 / busy
    if cores is not None and parts.cpu_ns > 0:
        per_s = min(per_s, cores * parts.samples * 1e9 / parts.cpu_ns)
    records = _inside(window, fetches)
    spread = rate([(one.samples or 0, one.wall_ns - one.blocked_ns) for one in records])
    return _measured(per_s, spread, f"{DRAIN}, the split of its batches")


def fetch_per_s(
    window: WindowResult | Missing, workers: int, fetches: Sequence[Fetches] = ()
) -> Ceiling:
    """Return F: samples per second if preparing cost nothing, and only what blocks were left."""
    parts = _split(window)
    if isinstance(parts, Missing):
        return parts
    if parts.blocked_ns * 1000 < parts.wall_ns:
        return Missing("the loader's workers were not blocked: storage sets no bound here")
    per_s = max(1, workers) * parts.samples * 1e9 / parts.blocked_ns
    records = _inside(window, fetches)
    spread = rate([(one.samples or 0, one.blocked_ns) for one in records])
    words = f"{DRAIN}, the split of its batches"
    if parts.bound:
        words += "; at least, as the kernel does not tell waits for a core apart"
    return _measured(per_s, spread, words)


@dataclass(frozen=True)
class _Parts:
    samples: int
    wall_ns: int
    cpu_ns: int
    blocked_ns: int
    bound: bool


def _split(window: WindowResult | Missing) -> _Parts | Missing:
    if isinstance(window, Missing):
        return window
    split = window.split
    if not split:
        return Missing("no work of the loader was recorded in the drain window")
    wall, cpu, blocked = (split.get(name) for name in ("wall_ns", "cpu_ns", "blocked_ns"))
    samples = split.get("samples")
    if samples is None and window.samples is not None and window.batches:
        samples = round(window.samples * (split.get("batches") or 0) / window.batches)
    if not samples:
        return Missing(_no_samples(window))
    if wall is None or cpu is None or blocked is None:
        return Missing("the kernel does not tell how the loader's workers spend their time")
    return _Parts(samples, wall, cpu, blocked, split.get("runqueue_ns") is None)


def _inside(window: WindowResult | Missing, fetches: Sequence[Fetches]) -> list[Fetches]:
    if isinstance(window, Missing):
        return []
    return [
        one
        for one in sorted(fetches, key=lambda one: one.end_ns)
        if window.begin_ns <= (one.begin_ns + one.end_ns) // 2 < window.end_ns and one.samples
    ]


def _loader_rate(window: WindowResult, workers: int) -> Rate | None:
    waited = window.accounts[_DATA_WAIT]
    if not window.samples or not window.batches or waited <= 0:
        return None
    each = window.samples / window.batches
    spread = rate([(each, ns) for ns in window.step_ns], together=max(1, workers))
    per_s = window.samples * 1e9 / waited
    if spread is None or spread.low is None or spread.high is None:
        return Rate(per_s, None, None)
    return Rate(per_s, min(per_s, spread.low), max(per_s, spread.high))


def _measured(per_s: float, spread: Rate | None, origin: str) -> Measured[float]:
    """Return a ceiling with the relative interval of what it was measured from."""
    if spread is None or spread.low is None or spread.high is None:
        return Measured(per_s, origin)
    low, high = spread.low / spread.per_s, spread.high / spread.per_s
    return Measured(per_s, origin, per_s * min(1.0, low), per_s * max(1.0, high))


def _of_kind(windows: list[WindowResult], kind: str) -> WindowResult | Missing:
    """Return the last window of a kind that measured something, or why there is none."""
    because = f"the trial had no {kind} window"
    for one in reversed(windows):
        if one.kind != kind:
            continue
        if one.batches and any(one.accounts):
            return one
        because = one.ended_by.removeprefix("failed: ")
        if because == one.ended_by:
            because = "; ".join(one.notes) or f"the {kind} window ended before it had measured any"
    return Missing(because)


def _no_samples(window: WindowResult) -> str:
    if window.samples is None:
        return "how many samples a batch holds could not be told"
    return f"the {window.kind} window ended before it had measured a batch"
