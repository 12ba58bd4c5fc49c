"""A speed-up of the run and of its steps: one from the other, where a whole run was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotlap.tune.predicted import inside_share, of_run, of_steps
from hotlap.values.comparison import Interval
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds
from hotlap.values.summary import Part
from unit.diagnose.made import facts as made
from unit.diagnose.made import run

SECOND = 1_000_000_000


def seen(start_s: float, steps_s: float) -> Facts:
    """Return facts of a whole run with a start and steps."""
    facts = made(run({"forward": 1.0}))
    wall = start_s + steps_s
    phases = {
        "start_up": Part(round(start_s * SECOND), start_s / wall),
        "steps": Part(round(steps_s * SECOND), steps_s / wall),
    }
    whole = replace(facts.run, phases=phases, wall_ns=round(wall * SECOND))
    return replace(facts, run=whole, whole_run=True)


def test_the_start_is_taken_out_of_a_prediction() -> None:
    # 5 s of start and 5 s of steps: a run twice as fast has no steps left.
    found = of_steps(Bounds(1.0, 1.25), seen(5, 5))
    assert found.low == pytest.approx(1.0)
    assert found.high == pytest.approx(0.5 / (0.8 - 0.5))


def test_there_and_back_is_the_same() -> None:
    facts = seen(3, 9)
    steps = of_steps(Bounds(1.2, 1.5), facts)
    assert steps.low is not None
    assert steps.high is not None
    again = of_run(Interval(steps.low, steps.low, steps.high), facts)
    assert again is not None
    assert [again.low, again.high] == pytest.approx([1.2, 1.5])


def test_what_speaks_of_steady_steps_stays() -> None:
    facts = replace(seen(5, 5), whole_run=False)
    assert inside_share(facts) is None
    assert of_steps(Bounds(1.2, 1.5), facts) == Bounds(1.2, 1.5)
    assert of_run(Interval(1.2, 1.3, 1.5), facts) is None
