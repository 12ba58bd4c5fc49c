"""Knobs in a whole training, beside all observers: those of class identical change no number."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from process.trial_runs import Trial, trial, window

PLAN = (window("warm_up", 2), window("baseline", 500))
IDENTICAL: dict[str, Any] = {
    "batched_fetch": True,
    "loader_workers": 2,
    "persistent_workers": True,
    "prefetch_depth": 4,
    "zero_grad_to_none": True,
    "evaluation_without_grad": True,
    "gc_control": "freeze",
}

pytestmark = pytest.mark.xdist_group("knobs")


@functools.cache
def unchanged() -> Trial:
    """Return a trial that changes nothing."""
    return trial(("plain_table.py",), *PLAN)


@functools.cache
def changed() -> Trial:
    """Return a trial with every knob that changes no number."""
    return trial(("plain_table.py",), *PLAN, settings=IDENTICAL)


def test_every_loss_and_score_is_bit_for_bit_the_same() -> None:
    found = changed()
    assert found.result.code == 0, found.result.stderr.decode()[-3000:]
    assert found.trainer.faults == ()
    assert len(found.log["losses"]) == 120
    assert found.log["losses"] == unchanged().log["losses"]
    assert found.log["scores"] == unchanged().log["scores"]


@pytest.mark.parametrize("name", sorted(IDENTICAL))
def test_each_acts(name: str) -> None:
    proof = changed().trainer.settings_proof[name]
    assert proof["acted"], proof


def test_batches_are_taken_at_once_without_workers_too() -> None:
    found = trial(("plain_table.py",), *PLAN, settings={"batched_fetch": True}, clock_samples=True)
    assert found.trainer.settings_proof["batched_fetch"]["acted"]
    assert found.trainer.faults == ()
    assert found.log["losses"] == unchanged().log["losses"]
