"""The whole plan against the command as it stands, on a machine made by hand."""

from __future__ import annotations

import pytest

from hotlap.tune.confirm import ORDER, Confirmed, confirm, is_clear
from hotlap.values.arm import Arm
from hotlap.values.comparison import Interval
from unit.tune.stage import Machine, product

TUNED = Arm({"good": True})


def confirmed(machine: Machine, most_runs: int = 99) -> Confirmed:
    """Confirm a plan of one knob, with time for so many runs."""
    return confirm(machine, Arm(), TUNED, lambda: len(machine.runs) < most_runs)


def sides(machine: Machine) -> str:
    """Return which arms were run, in the letters of ``ORDER``."""
    return "".join("B" if one == TUNED.settings else "A" for one in machine.arms())


def test_both_arms_come_first_equally_often() -> None:
    pairs = [ORDER[at : at + 2] for at in range(0, len(ORDER), 2)]
    assert sorted(pairs) == ["AB", "AB", "BA", "BA"]


def test_a_clear_gain_needs_four_runs() -> None:
    machine = Machine(product(good=0.8))
    found = confirmed(machine)
    assert sides(machine) == "ABBA"
    assert found.word == "faster"
    assert found.because is None
    assert found.gain is not None
    assert found.gain.mid == pytest.approx(1.25, rel=0.01)
    assert list(found.runs) == machine.runs


def test_what_is_not_clear_is_run_once_more_the_other_way() -> None:
    machine = Machine(product(good=0.99))
    found = confirmed(machine)
    assert sides(machine) == ORDER
    assert found.word == "no difference"


def test_it_ends_where_there_is_no_time_for_more() -> None:
    machine = Machine(product(good=0.99))
    assert confirmed(machine, most_runs=0).word == "no difference"
    assert sides(machine) == "ABBA"


def test_a_plan_that_slows_is_slower() -> None:
    assert confirmed(Machine(product(good=1.2))).word == "slower"


@pytest.mark.parametrize("slower_from", range(9))
def test_a_machine_that_slows_down_makes_no_gain(slower_from: int) -> None:
    found = confirmed(Machine(slower_from=slower_from))
    assert found.word == "no difference"


def test_where_runs_of_the_search_scattered_four_are_not_enough() -> None:
    machine = Machine(product(good=0.8), slower_from=2, slower=1.4)
    for _ in range(4):
        machine.run(Arm({"other": True}), "in the search")
    machine.slower_from = None
    assert confirmed(machine).word == "faster"
    assert sides(machine)[4:] == ORDER[:6]


def test_a_failure_says_which_side() -> None:
    found = confirmed(Machine(failing={"good": "exit code 1: out of memory"}))
    assert found.word == "not comparable"
    assert found.because == "under the plan: exit code 1: out of memory"
    assert found.gain is None
    bare = confirmed(Machine(bare_fails=True))
    assert bare.because == "as it stands: exit code 1"


@pytest.mark.parametrize("at", range(3))
def test_ctrl_c_ends_it_at_once(at: int) -> None:
    machine = Machine(product(good=0.8), interrupted_at=at)
    found = confirmed(machine)
    assert len(machine.runs) == at + 1
    assert found.word == "not comparable"
    assert "too few runs" in str(found.because)


def test_after_ctrl_c_it_does_not_begin() -> None:
    machine = Machine(is_interrupted=True)
    assert confirmed(machine).runs == ()
    assert machine.runs == []


@pytest.mark.parametrize(
    ("gain", "clear"),
    [
        (None, False),
        (Interval(1.2, 1.25, 1.3), True),
        (Interval(0.80, 0.82, 0.85), True),
        (Interval(1.1, 1.5, 1.9), False),
        (Interval(1.01, 1.05, 1.09), False),
        (Interval(0.99, 1.0, 1.01), False),
    ],
)
def test_when_more_runs_would_change_nothing(gain: Interval | None, clear: bool) -> None:
    assert is_clear(gain) is clear
