"""Sequences of optimizers whose steps are known."""

from __future__ import annotations

import pytest

from hotlap.account.cycles import Step, ruling, steps_of
from hotlap.values.record import Process
from unit.account.records import MS, Trainer, accounts


def _made(order: str) -> Process:
    """Build a trainer whose optimizers stepped in this order, named by letters."""
    trainer = Trainer().begin()
    for name in order:
        trainer.tick(accounts(forward=MS), optimizer="ABCDEFG".index(name))
    return trainer.build()


def _ticks(order: str) -> list[int]:
    return [step.ticks for step in steps_of(_made(order))]


def test_one_optimizer_makes_every_tick_a_step() -> None:
    assert _ticks("AAAAA") == [1] * 5


def test_a_plain_gan_closes_at_the_second() -> None:
    assert _ticks("AB" * 6) == [2] * 6


def test_an_open_cycle_at_the_end_is_left_out() -> None:
    assert _ticks("AB" * 6 + "A") == [2] * 6


def test_three_optimizers_close_at_the_last() -> None:
    assert _ticks("ABC" * 4 + "AB") == [3] * 4


def test_n_critic_steps_close_at_the_generator() -> None:
    assert _ticks("AAAAAB" * 5) == [6] * 5


def test_a_generator_that_opens_and_steps_least_often() -> None:
    assert _ticks("ABB" * 5) == [3] * 5
    assert _ticks("ABB" * 5 + "AB") == [3] * 5


def test_a_long_warm_up_of_the_critic_is_one_step() -> None:
    assert _ticks("A" * 50 + "B" + "AAAAAB" * 20)[:3] == [51, 6, 6]


def test_folds_are_trainings_one_after_the_other() -> None:
    assert _ticks("A" * 7 + "B" * 7 + "C" * 7) == [1] * 21


def test_a_new_optimizer_for_every_step() -> None:
    trainer = Trainer().begin()
    for at in range(3000):
        trainer.tick(accounts(forward=MS), optimizer=at)
    assert len(steps_of(trainer.build())) == 3000


def test_a_gan_in_each_fold() -> None:
    assert _ticks("AB" * 5 + "CCD" * 5) == [2] * 5 + [3] * 5


def test_an_optimizer_once_an_epoch_takes_no_part() -> None:
    steps = steps_of(_made(("A" * 150 + "B") * 2 + "A" * 10))
    assert len(steps) == 310
    assert sum(step.wall_ns for step in steps) == 312 * MS


def test_taking_turns_in_long_stretches_is_no_cycle() -> None:
    assert _ticks("A" * 30 + "B" * 30 + "A" * 30 + "B" * 30) == [1] * 120


def test_time_of_merged_ticks_adds_up() -> None:
    trainer = Trainer().begin()
    for _ in range(4):
        trainer.tick(accounts(data_wait=2 * MS, forward=MS), 0, batches=1)
        trainer.tick(accounts(forward=3 * MS, checkpoint=9 * MS), 1, batches=0)
    step = steps_of(trainer.build())[0]
    assert step == Step(
        last_tick=2,
        ticks=2,
        accounts=accounts(data_wait=2 * MS, forward=4 * MS, checkpoint=9 * MS),
        batches=1,
        cpu_ns=int(3 * MS * 0.95) + int(12 * MS * 0.95),
        epoch_first=False,
    )
    assert step.wall_ns == 6 * MS
    assert step.carved_ns == 9 * MS


def test_a_broken_excerpt_loses_its_first_open_cycle() -> None:
    process = _made("AB" * 20)
    kept = process.ticks[:8] + process.ticks[21:30]
    steps = steps_of(Process(**{**vars(process), "ticks": kept}))
    assert [step.last_tick for step in steps] == [2, 4, 6, 8, 24, 26, 28, 30]


@pytest.mark.parametrize(
    ("rules", "ruler"),
    [
        (["loader", "optimizer"], "optimizer"),
        (["explicit", "optimizer", "loader"], "explicit"),
        (["backward", "loader"], "loader"),
        (["backward"], "backward"),
        ([], "optimizer"),
    ],
)
def test_the_strongest_rule_rules(rules: list[str], ruler: str) -> None:
    trainer = Trainer().begin()
    for rule in rules:
        trainer.tick(accounts(forward=MS), rule=rule)
    assert ruling(trainer.build()) == ruler


def test_weaker_ticks_are_added_to_the_next_stronger_one() -> None:
    trainer = Trainer().begin()
    for rule in ("optimizer", "optimizer", "explicit", "optimizer", "explicit"):
        trainer.tick(accounts(forward=MS), rule=rule)
    steps = steps_of(trainer.build())
    assert [step.wall_ns for step in steps] == [3 * MS, 2 * MS]
    assert [step.ticks for step in steps] == [1, 1]
