"""# HL117 input-repeated-work: each worker of a stream prepares what the others throw away

**What.** The workers of an IterableDataset have to share the stream among themselves. Where one
prepares every sample and then picks its own (`islice(samples, worker, None, workers)`, `if i %
workers == worker` after the work), all of the work is done once per worker.

**How it is measured.** A worker's own CPU time for each sample that it delivers, against the time
of a sample that the training process prepares alone (drained without workers): with n workers it
is n times as much. The loader alone is no faster with more workers.

**When it is wrong.** Where a sample costs a worker more than it costs alone for another reason:
processors that share a core, caches that two of them overfill. These mostly cost less than twice.

**What to do.** Pick the worker's part of the stream before anything is read, parsed or
transformed: by file, by offset, or by skipping raw records.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.input import NO_WAIT, Input, input_of, point_at
from hotlap.diagnose.say import at, percent, text_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL117"
NAME = "input-repeated-work"
_NEARLY_ALL = 0.8
"""Of the work of all workers, done by each. Chosen: caches and shared cores seldom cost so much."""
_FASTER = 1.25
"""A loader that workers make so much faster shares its work."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the workers of an iterable data set."""
    data = input_of(facts)
    if data is None:
        return Unknown(NO_WAIT)
    if data.loader is None or not data.loader.iterable or data.workers < 2:
        return Clear("no workers share a stream")
    if not worth(facts, data.wait):
        return Clear("the training hardly waits for data")
    times = _times(facts, data)
    if times is None:
        return Unknown("the loader was not drained alone, or its workers' time is not known")
    if times < _NEARLY_ALL * data.workers or _shares(facts, data.workers):
        return Clear("each worker prepares its own samples only")
    spare = data.wait * (1.0 - 1.0 / data.workers)
    if not worth(facts, spare):
        return Clear("what is prepared more than once takes little time")
    line = f": {text_of(facts, data.region.top)} at {at(data.region.line)}" if data.region else ""
    return finding(
        facts,
        Rule(CODE, NAME),
        data.region,
        Claim(
            phase="data_wait",
            share=Bounds(0.6 * spare, spare),
            remedy=Remedy("code", (), "nothing, if each worker delivers the same samples"),
            say=(
                f"Each of the {data.workers} loader workers does the work for all samples of the "
                "stream and throws away those of the others (a sample that a worker delivers takes "
                f"it {times:.1f} times what one takes alone), so all of it is done "
                f"{data.workers} times while the training waits for data for "
                f"{percent(data.wait)} of its time{line}. To mend it, let each worker pick its "
                "part (shard) of the stream with get_worker_info() before it reads or parses it."
            ),
            reason=True,
            evidence=(
                Evidence("worker's CPU time per sample", round(times, 2), "times that of one"),
                *(
                    Evidence(f"loader alone, {one.workers} workers", round(one.per_s), "samples/s")
                    for one in facts.curve
                ),
            ),
        ),
    )


def _times(facts: Facts, data: Input) -> float | None:
    """Return a worker's CPU time per delivered sample, in times of a sample prepared alone."""
    alone = point_at(facts, 0)
    if data.loader is None or alone is None or not data.loader.batch_size:
        return None
    part = data.loader.split.get("cpu")
    if part is None or part.ns is None:
        return None
    return part.ns / data.loader.batch_size * alone.per_s / 1e9


def _shares(facts: Facts, workers: int) -> bool:
    """Tell whether the loader alone is faster with its workers than with one."""
    one, all_of_them = point_at(facts, 1), point_at(facts, workers)
    if one is None or all_of_them is None:
        return False
    return all_of_them.per_s > _FASTER * one.per_s
