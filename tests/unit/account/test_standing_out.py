"""What is said to stand out, and when nothing is."""

from __future__ import annotations

from typing import Any

from hotlap.account import summarise
from hotlap.values.record import Place, Process, Touch
from unit.account.records import MS, SECOND, Trainer, fetches, loader, plain_step, record, sample


def _said(process: Process, *others: Process, **fields: Any) -> tuple[str, ...]:
    return summarise(record(process, *others, **fields)).standing_out


def _waiting(
    rank: int | None = None, wait: int = 6 * MS, total: int = 10 * MS, **fields: Any
) -> Process:
    trainer = Trainer(rank=rank, world_size=None if rank is None else 2, pid=100 + (rank or 0))
    trainer.begin().steps(400, data_wait=wait, forward=total - wait)
    return trainer.farewell().build(loaders=(loader(),), fetches=(fetches(),), **fields)


def test_a_healthy_run_hears_that_nothing_stands_out() -> None:
    said = _said(Trainer().begin().steps(50).farewell().build())
    assert said == ("nothing stands out: 93 % of the step is forward, backward and optimizer",)


def test_waiting_for_data_comes_with_what_workers_and_cores_did() -> None:
    samples = (sample(3 * SECOND, [0, 0]), sample(5 * SECOND, [2 * SECOND, SECOND]))
    (said,) = _said(_waiting(), samples=samples)
    assert "waits for data in 60 % of the step" in said
    assert "the loader's 2 workers spend 61 % of a batch's time on the CPU" in said
    assert "75 % busy" in said


def test_a_wait_that_quick_workers_do_not_explain_is_not_laid_at_their_door() -> None:
    (said,) = _said(_waiting(wait=90 * MS, total=100 * MS))
    assert "spend" not in said
    assert "explains at most 6 % of that wait" in said
    assert "the sampler" in said
    (said,) = _said(_waiting(wait=90 * MS, total=100 * MS, unpack_ns=400 * 80 * MS))
    assert "89 % of it rebuilding what a worker has handed over" in said


def test_a_share_below_a_tenth_is_not_mentioned() -> None:
    (said,) = _said(_waiting(wait=MS // 2))
    assert said.startswith("nothing stands out")


def test_a_loader_without_workers_is_named_as_such() -> None:
    process = Trainer().begin().steps(50, data_wait=6 * MS, forward=4 * MS).farewell()
    given = fetches(worker=None, ipc_ns=None)
    (said,) = _said(process.build(loaders=(loader(workers=0),), fetches=(given,)))
    assert "no workers" in said


def test_waiting_on_one_rank_alone_is_said_to_be_there() -> None:
    (said,) = _said(_waiting(0, wait=MS // 2), _waiting(1))
    assert said.startswith("rank 1 waits for data in 60 %")
    assert "the one that waits least: 5 %" in said


def test_waiting_on_every_rank_is_said_to_be_everywhere() -> None:
    (said,) = _said(_waiting(0), _waiting(1))
    assert said.startswith("every process waits for data, rank 0 in 60 % of the step")


def test_large_parts_of_the_run_come_first_and_two_are_the_most() -> None:
    trainer = Trainer().begin()
    for at in range(100):
        carved = {"evaluation": 500 * MS, "checkpoint": 200 * MS} if at % 10 == 9 else {}
        trainer.tick(plain_step(other=5 * MS, **carved))
    said = _said(trainer.farewell().build())
    assert len(said) == 2
    assert said[0].startswith("evaluation takes")
    assert said[1].startswith("writing checkpoints takes")


def test_host_code_is_shown_with_the_line_that_reads_tensors() -> None:
    trainer = Trainer().begin().steps(50, forward=6 * MS, other=4 * MS)
    touch = Touch("sync", "item", Place("train.py", 47, "main"), 100, 150 * MS)
    (said,) = _said(trainer.farewell().build(touches=(touch,)))
    assert "40 % of the step" in said
    assert "item at train.py:47 is 30 % of the step, 2 times a step" in said


def test_steps_that_vary_are_mentioned_after_everything_else() -> None:
    trainer = Trainer().begin()
    for at in range(100):
        trainer.tick(plain_step(4.0 if at % 5 == 4 else 1.0))
    (said,) = _said(trainer.farewell().build())
    assert "one in ten takes 4 times the median" in said


def test_a_throttled_container_is_mentioned() -> None:
    process = Trainer().begin().steps(400).farewell().build()
    samples = (
        sample(3 * SECOND, [0], periods=0, throttled_periods=0),
        sample(5 * SECOND, [0], periods=20, throttled_periods=10),
    )
    (said,) = _said(process, samples=samples)
    assert "quota held the processes back in 50 %" in said


def test_few_steps_are_not_judged() -> None:
    (said,) = _said(Trainer().begin().steps(5, data_wait=MS).farewell().build())
    assert said.startswith("too few steps")


def _starved(**fields: Any) -> Process:
    trainer = Trainer(**fields).begin()
    for _ in range(50):
        trainer.tick(plain_step(), cpu_ns=3 * MS)
    return trainer.farewell().build()


def test_a_training_thread_without_a_core_is_mentioned() -> None:
    (said,) = _said(_starved())
    assert said.startswith("in 65 % of the step the training thread neither ran on a core")


def test_a_training_thread_that_waits_for_a_gpu_or_for_ranks_is_not() -> None:
    for fields in ({"device": "cuda:0"}, {"rank": 0, "world_size": 2}):
        (said,) = _said(_starved(**fields))
        assert said.startswith("nothing stands out")
