"""Ceilings from windows whose costs were written down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotlap.experiment.ceilings import ceilings, curve
from hotlap.values.facts import Measured, Missing
from hotlap.values.phase import ACCOUNTS
from hotlap.values.record import Fetches
from hotlap.values.trial import WindowResult

MS = 1_000_000
BATCH = 8


def accounts(**parts: int) -> tuple[int, ...]:
    """Return accounts with these nanoseconds."""
    return tuple(parts.get(name, 0) for name in ACCOUNTS)


def replay(steps: int = 40, step_ms: int = 20) -> WindowResult:
    """Make a replay window of steps that take 20 ms, half a millisecond of it waiting."""
    each = step_ms * MS
    return WindowResult(
        kind="replay",
        workers=None,
        begin_ns=0,
        end_ns=steps * each,
        steps=steps,
        batches=steps,
        samples=steps * BATCH,
        accounts=accounts(forward=steps * (each - MS // 2), data_wait=steps * MS // 2),
        step_ns=(each,) * steps,
        ended_by="steps",
    )


def drained(batches: int = 40, workers: int = 2, kind: str = "drain") -> WindowResult:
    """Make a drain window: a batch takes a worker 100 ms, 60 of them blocked, 30 on a core."""
    each = 100 * MS
    rounds = (each, *(0,) * (workers - 1)) * (batches // workers)
    return WindowResult(
        kind=kind,
        workers=workers if kind == "workers" else None,
        begin_ns=10_000 * MS,
        end_ns=10_000 * MS + each * batches // workers,
        steps=0,
        batches=batches,
        samples=batches * BATCH,
        accounts=accounts(data_wait=each * batches // workers),
        step_ns=rounds,
        split={
            "wall_ns": batches * each,
            "cpu_ns": batches * 30 * MS,
            "runqueue_ns": batches * 10 * MS,
            "blocked_ns": batches * 60 * MS,
            "collate_ns": batches * MS,
            "batches": batches,
            "samples": batches * BATCH,
        },
        ended_by="steps",
    )


def fetches(batches: int = 40, workers: int = 2) -> list[Fetches]:
    """Make the records that lie in the window of ``drained``."""
    return [
        Fetches(
            loader=None,
            worker=at % workers,
            batches=1,
            samples=BATCH,
            wall_ns=100 * MS,
            cpu_ns=30 * MS,
            runqueue_ns=10 * MS,
            blocked_ns=60 * MS,
            collate_ns=MS,
            collate_cpu_ns=MS,
            collate_runqueue_ns=0,
            ipc_ns=0,
            asked_bytes=0,
            disk_bytes=0,
            slowest_ns=100 * MS,
            begin_ns=(10_000 + 100 * (at // workers)) * MS,
            end_ns=(10_100 + 100 * (at // workers)) * MS,
        )
        for at in range(batches)
    ]


def test_the_four_ceilings() -> None:
    found = ceilings([replay(), drained()], workers=2, cores=2, fetches=fetches())
    assert isinstance(found.compute_per_s, Measured)
    assert found.compute_per_s.value == pytest.approx(BATCH / 0.0195)
    assert isinstance(found.loader_per_s, Measured)
    assert found.loader_per_s.value == pytest.approx(2 * BATCH / 0.1)
    assert isinstance(found.prep_per_s, Measured)
    assert found.prep_per_s.value == pytest.approx(2 * BATCH / 0.04)
    assert isinstance(found.fetch_per_s, Measured)
    assert found.fetch_per_s.value == pytest.approx(2 * BATCH / 0.06)
    for one in (found.compute_per_s, found.loader_per_s, found.prep_per_s, found.fetch_per_s):
        # Every stretch is like every other, so the interval has no width.
        assert [one.low, one.high] == pytest.approx([one.value] * 2)


def test_preparing_is_bound_by_the_cores() -> None:
    found = ceilings([drained(workers=4)], workers=4, cores=1)
    assert isinstance(found.prep_per_s, Measured)
    assert found.prep_per_s.value == pytest.approx(BATCH / 0.03)


def test_rounds_of_workers_make_no_interval() -> None:
    """Two workers deliver together: 100 ms, then nothing. That is no noise."""
    found = ceilings([drained(workers=2)], workers=2)
    assert isinstance(found.loader_per_s, Measured)
    assert found.loader_per_s.low == pytest.approx(found.loader_per_s.value)


def test_steps_that_differ_make_an_interval() -> None:
    uneven = replace(replay(), step_ns=tuple((10 + 20 * (at % 3 == 0)) * MS for at in range(40)))
    found = ceilings([uneven], workers=0)
    assert isinstance(found.compute_per_s, Measured)
    assert found.compute_per_s.low is not None
    assert found.compute_per_s.high is not None
    assert found.compute_per_s.low < found.compute_per_s.value < found.compute_per_s.high


def test_too_few_steps_make_none() -> None:
    found = ceilings([replay(steps=3)], workers=0)
    assert isinstance(found.compute_per_s, Measured)
    assert (found.compute_per_s.low, found.compute_per_s.high) == (None, None)


def test_where_nothing_blocks_storage_sets_no_bound() -> None:
    split = {**drained().split, "blocked_ns": 0, "wall_ns": 40 * 40 * MS}
    found = ceilings([replace(drained(), split=split)], workers=2)
    assert isinstance(found.fetch_per_s, Missing)
    assert "not blocked" in found.fetch_per_s.because
    assert isinstance(found.prep_per_s, Measured)


def test_what_was_not_measured_says_why() -> None:
    failed = replace(drained(), batches=0, samples=None, accounts=accounts(), split={})
    failed = replace(failed, ended_by="failed: the training loader no longer exists")
    found = ceilings([failed], workers=2)
    assert found.compute_per_s == Missing("the trial had no replay window")
    assert found.loader_per_s == Missing("the training loader no longer exists")
    assert found.prep_per_s == Missing("the training loader no longer exists")


def test_batches_of_unknown_size_have_no_rate() -> None:
    unknown = replace(drained(), samples=None)
    split = {**drained().split, "samples": None}
    found = ceilings([replace(unknown, split=split)], workers=2)
    assert isinstance(found.loader_per_s, Missing)
    assert isinstance(found.fetch_per_s, Missing)
    assert "samples" in found.fetch_per_s.because


def test_a_kernel_that_tells_no_waits_gives_a_lower_bound() -> None:
    split = {**drained().split, "runqueue_ns": None}
    found = ceilings([replace(drained(), split=split)], workers=2)
    assert isinstance(found.fetch_per_s, Measured)
    assert "at least" in found.fetch_per_s.origin


def test_the_curve_is_in_order_of_workers() -> None:
    windows = [drained(kind="workers", workers=count) for count in (4, 1, 2)]
    points = curve([*windows, drained()])
    assert [one.workers for one in points] == [1, 2, 4]
    assert [one.per_s for one in points] == [pytest.approx(80.0 * n) for n in (1, 2, 4)]
