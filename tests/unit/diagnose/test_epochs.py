"""An epoch's end that was seen apart counts with the share that it has of an epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotlap.diagnose.costs import base_of, costs_of
from hotlap.diagnose.epochs import with_epoch_ends
from hotlap.diagnose.judge import judge
from hotlap.values.facts import EpochEnd, Facts, Measured
from unit.diagnose.made import HEALTHY, HEALTHY_STEP, SECOND, entry, facts, run

STEPS = 1_000
"""Watched, of 0.1 s each."""


def watched(evaluation_s: float, steps_of_an_epoch: float) -> Facts:
    """Return a run of which 100 s of steps were watched, and the end of an epoch apart."""
    ns = int(evaluation_s * SECOND)
    sampled = replace(entry("evaluation", 50, 0.0, "evaluate"), ns=2 * ns, working_ns=2 * ns)
    end = EpochEnd(steps_of_an_epoch, {"evaluation": ns}, (sampled,), whole=True)
    seen = facts(run(HEALTHY_STEP), *HEALTHY)
    return replace(
        seen,
        whole_run=False,
        counts={**seen.counts, "steps": STEPS},
        epoch_end=Measured(end, "made"),
    )


def test_an_end_is_divided_by_the_steps_of_its_epoch() -> None:
    # 500 s after 10,000 steps of 0.1 s: a third of the time, as it is of 100 s and 50 s.
    seen = with_epoch_ends(watched(500.0, 10_000))
    base = base_of(seen)
    assert base is not None
    assert base.ns == pytest.approx(150 * SECOND)
    (cost,) = [one for one in costs_of(seen) if one.phase == "evaluation"]
    assert cost.share == pytest.approx(1 / 3)
    assert cost.working == 1.0


def test_much_evaluation_is_found_and_little_is_not() -> None:
    assert [one.code for one in judge(watched(500.0, 10_000)).findings] == ["HL702"]
    assert judge(watched(50.0, 10_000)).findings == ()


def test_what_was_watched_is_left_as_it_was() -> None:
    plain = facts(run({"forward": 1.0}), entry("forward", 30, 0.5))
    assert with_epoch_ends(plain) is plain
