"""How much faster one arm is, when all runs do the same work in the same order."""

from __future__ import annotations

import random

import pytest

from hotlap.stats.paired import LEAST, paired, run_spread

MS = 1_000_000


def run(factor: float = 1.0, seed: int = 0, noise: float = 0.01, length: int = 40) -> list[int]:
    """Return stretches of about 10 ms; every eighth holds an evaluation of 80 ms more."""
    chance = random.Random(seed)
    return [
        round((90 if at % 8 == 7 else 10) * MS * factor * (1 + chance.uniform(-noise, noise)))
        for at in range(length)
    ]


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_known_ratio_lies_in_a_narrow_interval(factor: float) -> None:
    found = paired([run(seed=1)], [run(factor, seed=2)])
    assert found is not None
    assert found.low <= 1 / factor <= found.high
    assert found.mid == pytest.approx(1 / factor, rel=0.01)
    assert found.high / found.low < 1.02


def test_what_all_runs_do_at_the_same_place_does_not_widen_the_interval() -> None:
    alike = paired([run(noise=0.0)], [run(0.8, noise=0.0)])
    assert alike is not None
    assert alike.high - alike.low < 0.001
    moved = run(0.8, noise=0.0)
    apart = paired([run(noise=0.0)], [moved[3:] + moved[:3]])
    assert apart is not None
    assert apart.high - apart.low > 0.1


def test_one_disturbed_run_of_three_changes_little() -> None:
    after = [run(0.8, seed) for seed in (11, 12, 13)]
    sound = paired([run(seed=1)], after)
    disturbed = paired([run(seed=1)], [*after[:2], [3 * one for one in after[2]]])
    assert sound is not None
    assert disturbed is not None
    assert disturbed.mid == pytest.approx(sound.mid, rel=0.02)


def test_what_the_shortest_run_has_is_compared() -> None:
    cut = run(0.5, noise=0.0)[:16]
    found = paired([run(noise=0.0)], [cut])
    assert found is not None
    assert found.mid == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [run()]),
        ([run()], []),
        ([run()], [run()[: LEAST - 1]]),
        ([run()], [()]),
        ([run()], [[0] * 40]),
    ],
)
def test_there_is_none_where_nothing_can_be_compared(
    before: list[list[int]], after: list[list[int]]
) -> None:
    assert paired(before, after) is None


def test_the_same_runs_give_the_same_interval_each_time() -> None:
    sides = [run(seed=1), run(seed=2)], [run(0.9, seed=3)]
    assert paired(*sides) == paired(*sides)


def test_the_middle_never_lies_outside() -> None:
    found = paired([run(seed=1), run(1.4, seed=2)], [run(0.9, seed=3)])
    assert found is not None
    assert found.low <= found.mid <= found.high


def test_the_spread_of_whole_runs_widens_the_interval_and_more_runs_narrow_it() -> None:
    alone = paired([run(seed=1)], [run(0.8, seed=2)], 0.1)
    several = paired([run(seed=1)] * 4, [run(0.8, seed=2)] * 4, 0.1)
    narrow = paired([run(seed=1)], [run(0.8, seed=2)], 0.0)
    assert alone is not None
    assert several is not None
    assert narrow is not None
    assert alone.high / alone.low > several.high / several.low > narrow.high / narrow.low
    assert alone.low < 1 / 0.8 / 1.1
    assert narrow == paired([run(seed=1)], [run(0.8, seed=2)])


def test_two_runs_of_no_arm_have_no_spread() -> None:
    assert run_spread([]) is None
    assert run_spread([[1.0], [2.0]]) is None
    assert run_spread([[0.0, 0.0]]) is None


def test_arms_that_differ_are_no_spread() -> None:
    assert run_spread([[1.0, 1.0], [9.0, 9.0]]) == 0.0


def test_more_runs_of_the_same_scatter_are_surer() -> None:
    two = run_spread([[1.0, 1.02]])
    many = run_spread([[1.0, 1.02]] * 8)
    assert two is not None
    assert many is not None
    assert many < two / 4
    assert many > 0.02


def test_one_disturbed_run_does_not_make_everything_unknown() -> None:
    quiet = [[1.0, 1.01], [2.0, 2.02], [1.5, 1.515]]
    still = run_spread(quiet)
    disturbed = run_spread([*quiet, [1.0, 1.8]])
    assert still is not None
    assert disturbed is not None
    assert disturbed < 2 * still
