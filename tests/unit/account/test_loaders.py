"""The worker split: exclusive parts that sum to the time of a batch, per loader."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.account import summarise
from hotlap.account.loaders import split
from hotlap.values.phase import WORKER_SPLIT
from hotlap.values.record import Fetches, Loader
from hotlap.values.summary import LoaderSummary, RunSummary
from unit.account.records import MS, Trainer, fetches, loader, record


def _summary(loaders: tuple[Loader, ...], given: tuple[Fetches, ...], **more: Any) -> RunSummary:
    trainer = Trainer().begin().steps(20).farewell()
    return summarise(record(trainer.build(loaders=loaders, fetches=given, **more)))


def _loaders(*given: Fetches, **fields: Any) -> tuple[LoaderSummary, ...]:
    return _summary((loader(**fields),), given).trainers[0].loaders


def test_collate_is_taken_out_of_the_other_parts() -> None:
    assert split([fetches()]) == {
        "blocked": 9 * MS,
        "cpu": 64 * MS,
        "runqueue": 17 * MS,
        "collate": 10 * MS,
        "ipc": 5 * MS,
    }


def test_parts_sum_to_the_time_of_a_batch() -> None:
    (one,) = _loaders(fetches(), fetches(worker=1, wall_ns=200 * MS, blocked_ns=110 * MS))
    assert one.batches == 20
    assert one.batch_ns == sum(part.ns or 0 for part in one.split.values()) == 15_500_000
    assert sum(part.share or 0.0 for part in one.split.values()) == pytest.approx(1.0)
    assert set(one.split) == set(WORKER_SPLIT)


def test_a_collate_that_outweighs_a_part_never_makes_it_negative() -> None:
    parts = split([fetches(cpu_ns=2 * MS, blocked_ns=0, runqueue_ns=MS)])
    assert parts["cpu"] == parts["runqueue"] == parts["blocked"] == 0


def test_an_unknown_wait_for_cores_makes_blocked_an_upper_bound() -> None:
    given = fetches(runqueue_ns=None, collate_runqueue_ns=None, blocked_ns=30 * MS)
    summary = _summary((loader(),), (given,))
    (one,) = summary.trainers[0].loaders
    assert one.split["runqueue"].ns is None
    assert one.upper_bound
    assert one.split["blocked"].ns == 2_600_000
    assert any("upper bound" in because for _, because in summary.not_measured)


def test_without_workers_there_is_no_hand_over() -> None:
    summary = _summary((loader(workers=0),), (fetches(worker=None, ipc_ns=None),))
    (one,) = summary.trainers[0].loaders
    assert one.split["ipc"].ns is None
    assert any("no workers" in because for _, because in summary.not_measured)


def test_a_fetch_finds_its_loader_by_ordinal_seed_or_data_set() -> None:
    loaders = (
        loader(base_seeds=(11, 12)),
        loader(ordinal=1, dataset="Held", role="evaluation", base_seeds=(21,)),
    )
    given = (
        fetches(loader=1, batches=1),
        fetches(loader=None, base_seed=12, batches=2),
        fetches(loader=None, base_seed=None, dataset="Held", batches=4),
    )
    found = _summary(loaders, given).trainers[0].loaders
    assert [one.batches for one in found] == [2, 5]


def test_fetches_of_an_unknown_loader_are_kept_apart() -> None:
    known, stray = _loaders(fetches(), fetches(loader=None, dataset="Other", worker=3))
    assert known.batches == stray.batches == 10
    assert (stray.dataset, stray.role, stray.workers) == ("Other", "unknown", 1)


def test_two_loaders_of_one_data_set_are_not_guessed_apart() -> None:
    loaders = (loader(), loader(ordinal=1))
    found = _summary(loaders, (fetches(loader=None, dataset="Photos"),)).trainers[0].loaders
    assert [one.batches for one in found] == [0, 0, 10]


def test_a_training_loader_without_a_batch_says_so() -> None:
    summary = _summary((loader(),), ())
    (one,) = summary.trainers[0].loaders
    assert one.batch_ns is None
    assert one.split["cpu"].ns is None
    assert ("worker split of loader 0 (Photos)", "no batch of it was recorded") in (
        summary.not_measured
    )


def test_bytes_are_missing_when_one_worker_could_not_tell() -> None:
    (one,) = _loaders(fetches(), fetches(worker=1, disk_bytes=None))
    assert one.asked_bytes == 2000
    assert one.disk_bytes is None


def test_unpacking_belongs_to_the_only_training_loader() -> None:
    summary = _summary((loader(),), (fetches(),), unpack_ns=7)
    assert summary.trainers[0].loaders[0].unpack_ns == 7
    both = _summary((loader(), loader(ordinal=1)), (fetches(),), unpack_ns=7)
    assert [one.unpack_ns for one in both.trainers[0].loaders] == [None, None]
