"""What a gain is predicted from: the lines' share, what goes with it, the noise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotlap.diagnose import judge, predict
from hotlap.diagnose.build import Claim, Rule, finding
from hotlap.values.facts import Facts, Measured
from hotlap.values.finding import Bounds, Remedy
from unit.diagnose.made import HEALTHY_STEP, entry, facts, run


def _quiet() -> Facts:
    return replace(facts(run(HEALTHY_STEP)), noise=Measured(0.0, "test"))


def _gain(given: Facts, phase: str, status: str = "suspected", part: float | None = None) -> Bounds:
    claim = Claim(
        phase=phase,
        share=Bounds(0.3, 0.4),
        remedy=Remedy("code", (), ""),
        say="",
        status=status,
        interrupted=part,
    )
    return finding(given, Rule("HL000", "test"), None, claim).predicted_speedup


def test_some_of_the_rest_of_the_steps_goes_with_what_interrupts_them() -> None:
    given = _quiet()
    steps = (given.run.phases["steps"].ns or 0) / (given.run.wall_ns or 1)
    assert steps > 0.5
    alone = predict.speedup(given, Bounds(0.3, 0.4))
    beside = _gain(given, "other")
    assert beside.low == pytest.approx(0.994 / (1 - 0.3 - 0.05 * (steps - 0.4)))
    assert beside.high == pytest.approx(1.006 / (1 - 0.4 - 0.2 * (steps - 0.4)))
    assert (beside.low or 0) > (alone.low or 0)
    assert _gain(given, "data_wait") == beside


@pytest.mark.parametrize(
    ("phase", "status"),
    [("start_up", "suspected"), ("evaluation", "suspected"), ("other", "proven")],
)
def test_nothing_goes_with_what_is_beside_the_steps_or_was_shown(phase: str, status: str) -> None:
    given = _quiet()
    assert _gain(given, phase, status) == predict.speedup(given, Bounds(0.3, 0.4))


def test_what_comes_every_tenth_step_interrupts_a_tenth_of_them() -> None:
    given = _quiet()
    steps = (given.run.phases["steps"].ns or 0) / (given.run.wall_ns or 1)
    gain = _gain(given, "checkpoint", part=0.1)
    assert gain.high == pytest.approx(1.006 / (1 - 0.4 - 0.2 * 0.1 * steps))


def test_all_causes_together_gain_what_each_gains_alone() -> None:
    found = judge(
        facts(
            run(HEALTHY_STEP),
            entry("other", 19, 0.3, expression="copy.deepcopy(state)"),
            entry("logging", 30, 0.1, expression="print(loss)"),
        )
    )
    assert found.findings
    for one in found.findings:
        assert (found.together.low or 0) >= (one.predicted_speedup.low or 0)
        assert (found.together.high or 0) >= (one.predicted_speedup.high or 0)
