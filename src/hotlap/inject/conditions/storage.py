"""The same samples once from storage and once from the page cache, in the training process.

DS-Analyzer (Mohan et al., VLDB 2021) tells the reading of data from its preparing by a run on a
cold and one on a warm page cache. Here that is done with a few samples of the training's own
sampler: they are prepared once to learn which files they read, then those files are let go of and
the samples are prepared twice more. What the kernel holds is looked at before and after.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

from hotlap.inject.conditions import drain as draining
from hotlap.inject.conditions import page_cache
from hotlap.inject.conditions.deliveries import Source, is_iterable
from hotlap.probe.fetches import ThreadFiles

_MOST_BYTES: Final = 1 << 30
"""More than this is not thrown out of the page cache: the next run would have to read it again."""
_COLD: Final = 0.1
"""So much of the files may stay in memory in a pass that is called cold."""
_NS: Final = 1_000_000_000


@dataclass(frozen=True)
class Pass:
    """Samples prepared one after the other; blocked is what is neither work nor, where the kernel
    tells that, waiting for a core. read_bytes: from storage; None where the kernel does not tell.
    """

    samples: int
    wall_ns: int
    cpu_ns: int
    runqueue_ns: int | None
    blocked_ns: int
    read_bytes: int | None


@dataclass(frozen=True)
class Compared:
    """Two passes over the same samples. files: their sizes in bytes. stayed: share (0-1) of
    what was in memory of them that was still there when the cold pass began."""

    cold: Pass
    warm: Pass
    files: dict[str, int]
    stayed: float

    def split(self) -> dict[str, int | None]:
        """Return the form of ``WindowResult.split``."""
        passes = {"cold": self.cold, "warm": self.warm}
        return {
            "samples": self.cold.samples,
            "files": len(self.files),
            "file_bytes": sum(self.files.values()),
            **{
                f"{name}_{what}": value
                for name, one in passes.items()
                for what, value in asdict(one).items()
                if what != "samples"
            },
        }


def compare(source: Source, samples: int, seconds: float) -> Compared:
    """Prepare the first samples of another epoch three times, the last two cold and warm.

    samples: at most. seconds: of each pass, at most. Raises LookupError, in words, where nothing
    can be said; else what the data set raises.
    """
    group = sys.modules["torch"].distributed
    together = group.is_available() and group.is_initialized()
    if together and group.get_world_size() > 1:
        raise LookupError("several ranks read the same files: each warms them for the others")
    take = _taking(source)
    with draining.chance_kept():
        batches = _batches(source, samples)
        if not batches:
            raise LookupError("the sampler gave no index for another epoch")
        with page_cache.Opened().noting() as paths:
            first = _go_through(batches, take, samples, seconds)
        # Who opens no file may read one that it holds; who does is not asked for others.
        files = page_cache.data_files(paths) or page_cache.data_files(page_cache.held_files())
        stayed = _let_go(files)
        cold = _go_through(batches, take, first.samples, seconds)
        warm = _go_through(batches, take, cold.samples, seconds)
    if cold.read_bytes == 0:
        raise LookupError("nothing was read from storage, though the files had left the page cache")
    if warm.samples < cold.samples:
        raise LookupError("the same samples took longer from memory than from storage")
    return Compared(cold, warm, files, stayed)


def _go_through(
    batches: list[list[Any]], take: Callable[[Any], Any], most: int, seconds: float
) -> Pass:
    files = ThreadFiles()
    until = perf_counter_ns() + int(seconds * _NS)
    samples = 0
    with draining.chance_kept():  # what is drawn by chance is the same in each pass
        io, queue = files.io_bytes(), files.runqueue_ns()
        cpu, begin = thread_time_ns(), perf_counter_ns()
        for one in itertools.chain.from_iterable(batches):
            take(one)
            samples += 1
            if samples == most or perf_counter_ns() >= until:
                break
        wall, cpu = perf_counter_ns() - begin, thread_time_ns() - cpu
        waited, read = files.runqueue_ns(), files.io_bytes()
    files.close()
    in_queue = None if waited is None or queue is None else waited - queue
    return Pass(
        samples,
        wall,
        min(cpu, wall),
        in_queue,
        max(0, wall - cpu - (in_queue or 0)),
        None if read is None or io is None else read[1] - io[1],
    )


def _let_go(files: dict[str, int]) -> float:
    """Drop the files from the page cache; return which share of them stayed."""
    if not files:
        raise LookupError("preparing samples read no file that could be seen")
    before = _resident(files)
    if not before:
        raise LookupError("what the samples read left no trace in the page cache")
    if before > _MOST_BYTES:
        raise LookupError(
            f"the files of the samples hold {before >> 20} MiB of the page cache, more than the "
            f"{_MOST_BYTES >> 20} MiB that are thrown out of it for an experiment"
        )
    page_cache.let_go(files)
    stayed = _resident(files) / max(1, before)
    if stayed > _COLD:
        raise LookupError(
            f"{stayed:.0%} of what was in memory of the files that the samples read stayed there: "
            "they lie there for good, this or another process holds them, or they are another "
            "user's"
        )
    return stayed


def _resident(files: dict[str, int]) -> int:
    found = [page_cache.resident_bytes(path) for path in files]
    if None in found:
        raise LookupError("the kernel does not tell what the page cache holds")
    return sum(one for one in found if one is not None)


def _batches(source: Source, samples: int) -> list[list[Any]]:
    """Return the first indices that the training's sampler gives for another epoch."""
    loader = draining.loader_of(source)
    found: list[list[Any]] = []
    together = loader._auto_collation
    for one in iter(loader._index_sampler):
        found.append(list(one) if together else [one])
        if sum(map(len, found)) >= samples:
            break
    return found


def _taking(source: Source) -> Callable[[Any], Any]:
    """Return what prepares one sample; raises LookupError for a stream."""
    loader = draining.loader_of(source)
    if is_iterable(loader):
        raise LookupError("the data is a stream: its samples cannot be asked for twice")
    dataset = loader.dataset
    if not hasattr(dataset, "__getitem__") and hasattr(dataset, "__getitems__"):
        return lambda index: dataset.__getitems__([index])
    return lambda index: dataset[index]
