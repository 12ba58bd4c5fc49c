"""What became of a run's plan: did its knobs act, are its steps as fast as they were tuned to?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotlap.account.plan import plan_summary
from hotlap.account.summarise import summarise
from hotlap.values.record import Process
from hotlap.values.summary import PlanSummary
from unit.account.records import MS, Trainer, record

PLAN: dict[str, Any] = {
    "file": "hotlap.plan.toml",
    "knobs": {"anomaly_mode": False, "loader_workers": 2},
    "left_out": {"compile": "what it brings depends on the machine"},
    "differences": ["torch: 2.12 when it was measured, 2.13 now"],
    "step_ns": [9 * MS, 11 * MS],
}


def trained(rank: int | None = None, **acted: bool) -> Process:
    """Return a process that trained in steps of 10 ms. acted: what its knobs say."""
    proofs = {
        knob: {"value": 1, "acted": done, "proof": f"{knob} of rank {rank}"}
        for knob, done in acted.items()
    }
    made = Trainer(rank=rank).begin().steps(200, spread=0.001).farewell().build()
    return replace(made, settings_proof=proofs)


def found(*processes: Process, **plan: Any) -> PlanSummary:
    """Return what became of the plan in a run of these processes."""
    told = summarise(record(*processes, plan={**PLAN, **plan})).plan
    assert told is not None
    return told


def test_a_run_without_a_plan_has_none() -> None:
    assert summarise(record(trained())).plan is None
    assert plan_summary(record(trained()), [], []) is None


def test_each_knob_acted_did_nothing_or_was_not_heard_of() -> None:
    told = found(trained(anomaly_mode=True, loader_workers=False))
    assert told.acted == {"anomaly_mode": "anomaly_mode of rank None"}
    assert told.idle == {"loader_workers": "loader_workers of rank None"}
    assert told.unheard == ()
    assert found(trained(anomaly_mode=True)).unheard == ("loader_workers",)
    assert found().unheard == ("anomaly_mode", "loader_workers")


def test_a_knob_that_acted_in_one_rank_acted() -> None:
    told = found(trained(0, anomaly_mode=False), trained(1, anomaly_mode=True))
    assert told.acted == {"anomaly_mode": "anomaly_mode of rank 1"}
    assert told.idle == {}


def test_what_was_left_out_and_what_differs_is_handed_on() -> None:
    told = found(trained())
    assert told.file == "hotlap.plan.toml"
    assert told.left_out == PLAN["left_out"]
    assert told.differences == tuple(PLAN["differences"])


@pytest.mark.parametrize(
    ("band", "word"),
    [
        ([9 * MS, 11 * MS], "inside"),
        ([5 * MS, 6 * MS], "above"),
        ([15 * MS, 16 * MS], "below"),
        (None, None),
        ([1], None),
        ("fast", None),
    ],
)
def test_steps_are_held_against_the_band(band: Any, word: str | None) -> None:
    told = found(trained(), step_ns=band)
    assert told.step == word
    assert (told.band_ns is None) == (word is None)


def test_a_run_without_steps_is_held_against_nothing() -> None:
    assert found().step is None


def test_a_plan_that_is_damaged_says_what_it_can() -> None:
    told = summarise(record(trained(), plan={"file": "x.toml"})).plan
    assert told is not None
    assert (told.acted, told.idle, told.unheard) == ({}, {}, ())
