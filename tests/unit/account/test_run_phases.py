"""Run phases sum to the wall time, for random records and for hand-made ones."""

from __future__ import annotations

import random

import pytest

from hotlap.account import summarise
from hotlap.values.phase import ACCOUNTS, RUN_PHASES
from hotlap.values.record import Process, Record
from hotlap.values.summary import RunSummary
from unit.account.records import MS, SECOND, Trainer, accounts, going, plain_step, record


def _sum(summary: RunSummary) -> int:
    return sum(part.ns or 0 for part in summary.phases.values())


def _reasons(summary: RunSummary) -> dict[str, str]:
    return dict(summary.not_measured)


def _spend(generator: random.Random) -> dict[str, int]:
    names = generator.sample(ACCOUNTS, generator.randint(0, len(ACCOUNTS)))
    return {name: generator.randint(0, 50 * MS) for name in names}


def _random_trainer(generator: random.Random, start_ns: int) -> Trainer:
    trainer = Trainer(start_ns).begin(**_spend(generator))
    rules = generator.choice([("optimizer",), ("loader", "optimizer"), ("backward",)])
    for _ in range(generator.randint(1, 60)):
        spent = accounts(**_spend(generator))
        trainer.tick(spent, generator.randint(0, 2), generator.choice(rules))
    return trainer.farewell(**_spend(generator))


@pytest.mark.parametrize("seed", range(40))
def test_phases_sum_to_the_wall_time(seed: int) -> None:
    generator = random.Random(seed)
    trainer = _random_trainer(generator, 2 * SECOND)
    process = trainer.build(window=generator.randint(1, 20), detail=generator.choice([None, 5]))
    summary = summarise(record(process))
    assert set(summary.phases) == set(RUN_PHASES)
    assert _sum(summary) == summary.wall_ns
    assert sum(part.share or 0.0 for part in summary.phases.values()) == pytest.approx(1.0)
    assert _sum(summary) == sum(part.ns or 0 for part in summary.trainers[0].phases.values())


@pytest.mark.parametrize("seed", range(20))
def test_trainings_in_processes_one_after_the_other_sum_too(seed: int) -> None:
    generator = random.Random(seed)
    processes: list[Process] = []
    begin = 2 * SECOND
    for pid in range(generator.randint(2, 4)):
        trainer = _random_trainer(generator, begin)
        processes.append(trainer.build(pid=pid))
        begin = trainer.now + generator.randint(0, SECOND)
    summary = summarise(record(*processes))
    assert _sum(summary) == summary.wall_ns
    assert len(summary.trainers) == len(processes)
    lives = [sum(part.ns or 0 for part in one.phases.values()) for one in summary.trainers]
    assert sum(lives) <= (summary.wall_ns or 0)


def _five_parts() -> Process:
    trainer = Trainer().begin(other=300 * MS, evaluation=50 * MS)
    for _ in range(10):
        trainer.tick(plain_step(checkpoint=2 * MS))
    return trainer.farewell(other=40 * MS, epoch_edge=10 * MS).build()


def test_each_part_goes_where_it_belongs() -> None:
    phases = summarise(record(_five_parts())).phases
    assert {name: part.ns for name, part in phases.items()} == {
        "start_up": 1300 * MS,
        "steps": 100 * MS,
        "evaluation": 50 * MS,
        "checkpoint": 20 * MS,
        "epoch_edge": 10 * MS,
        "compile": 0,
        "shut_down": 290 * MS,
    }


def test_a_killed_process_leaves_the_rest_missing_and_not_shut_down() -> None:
    process = Trainer().begin().steps(20).build()
    summary = summarise(record(process, exit_ns=10 * SECOND, exit_code=-9))
    assert summary.phases["shut_down"].ns is None
    assert summary.phases["shut_down"].share is None
    assert "left no farewell" in _reasons(summary)["shut_down"]
    assert summary.wall_ns == 9 * SECOND
    assert _sum(summary) < summary.wall_ns
    assert summary.horizon_steps is None


def test_a_run_still_going_reaches_to_its_last_record() -> None:
    trainer = Trainer().begin().steps(20)
    summary = summarise(going(record(trainer.build())))
    assert not summary.finished
    assert summary.wall_ns == trainer.now - SECOND == _sum(summary)
    assert summary.phases["shut_down"].ns is None
    assert "still at work" in _reasons(summary)["shut_down"]
    assert "still going" in _reasons(summary)["end of the run"]


def test_lost_windows_are_said_to_be_lost() -> None:
    trainer = Trainer().begin().steps(64)
    whole = trainer.farewell().build(window=16, detail=16)
    holed = Process(**{**vars(whole), "windows": whole.windows[:1] + whole.windows[3:]})
    summary = summarise(record(holed))
    assert _sum(summary) < (summary.wall_ns or 0)
    assert "records were lost" in _reasons(summary)["unrecorded time of the run"]


def test_a_restarted_rank_keeps_the_time_of_the_killed_one_missing() -> None:
    first = Trainer(rank=0, world_size=1, pid=1).begin().steps(20)
    second = Trainer(first.now + 5 * SECOND, rank=0, world_size=1, pid=2).begin().steps(20)
    summary = summarise(record(first.build(), second.farewell().build()))
    assert summary.wall_ns is not None
    assert summary.wall_ns - _sum(summary) == 5 * SECOND
    assert "a process was killed" in _reasons(summary)["unrecorded time of the run"]


def test_no_step_at_all_is_start_up_and_says_so() -> None:
    process = Trainer().farewell(other=3 * SECOND).build()
    summary = summarise(record(process))
    assert summary.phases["start_up"].ns == summary.wall_ns
    assert summary.absence is not None
    assert "made no step" in summary.absence


@pytest.mark.parametrize(
    ("seen", "words"),
    [((), "-E, -I or -S"), (({"pid": 1, "torch": None},), "none imported torch")],
)
def test_nobody_trained(seen: tuple[dict[str, object], ...], words: str) -> None:
    summary = summarise(record(exit_ns=3 * SECOND, seen=seen))
    assert summary.trainers == ()
    assert summary.absence is not None
    assert words in summary.absence
    assert summary.phases["steps"].ns is None
    assert summary.standing_out == ()


def test_ranks_at_the_same_time_give_the_phases_of_the_lowest() -> None:
    def rank(number: int) -> Process:
        trainer = Trainer(rank=number, world_size=2, pid=100 + number)
        return trainer.begin(other=number * SECOND).steps(30).farewell().build()

    both: Record = record(rank(1), rank(0))
    summary = summarise(both)
    assert [one.rank for one in summary.trainers] == [0, 1]
    assert summary.phases["start_up"] == summary.trainers[0].phases["start_up"]
    assert summary.trainers[1].phases["start_up"].ns == 2 * SECOND
    assert _sum(summary) == summary.wall_ns
