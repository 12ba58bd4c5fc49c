"""Changes that a trial tries: that they act in the script, and say so."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from process.trial_runs import Trial, trial, window

WORDS = ("known_cost.py", "--plant", "compute=0,blocked=0,cpu=0", "--evaluate", "--anomaly")
PLAN = (window("warm_up", 2), window("baseline", 40))
ALL: dict[str, Any] = {
    "anomaly_mode": False,
    "intra_op_threads": 2,
    "loader_workers": 2,
    "prefetch_depth": 3,
    "persistent_workers": True,
    "worker_threads": 2,
    "fused_optimizer": True,
    "flush_denormal": True,
    "zero_grad_to_none": False,
    "gc_control": "disable",
    "evaluation_without_grad": True,
    "stdout": "drop",
    "saves": "skip",
    "matmul_precision": "high",
}

pytestmark = pytest.mark.xdist_group("settings")


@functools.cache
def unchanged() -> Trial:
    """Return a trial that changes nothing."""
    return trial(WORDS, *PLAN)


@functools.cache
def changed() -> Trial:
    """Return a trial that changes everything at once."""
    return trial(WORDS, *PLAN, settings=ALL)


def test_nothing_is_changed_unasked() -> None:
    found = unchanged()
    assert found.result.code == 0
    assert found.trainer.settings_proof == {}
    assert set(found.log["anomaly"]) == {True}
    assert set(found.log["graphs"]) == {True}
    assert found.log["saved"]
    assert found.log["threads"] == 1
    assert found.result.stdout.startswith(b"epoch 1\n")
    assert [one.workers for one in found.trainer.loaders] == [0]


def test_all_changes_act_in_the_script() -> None:
    found = changed()
    assert found.result.code == 0, found.result.stderr.decode()[-3000:]
    assert found.trainer.faults == ()
    assert set(found.log["anomaly"]) == {False}
    assert set(found.log["graphs"]) == {False}
    assert not found.log["saved"]
    assert found.log["threads"] == 2
    assert found.result.stdout == b""
    (loader,) = found.trainer.loaders
    assert (loader.workers, loader.prefetch, loader.persistent) == (2, 3, True)
    switches = found.trainer.facts["switches"]
    assert switches["fused"] is True
    assert switches["matmul_precision"] == "high"
    assert found.log["epochs"] == unchanged().log["epochs"]


@pytest.mark.parametrize("name", sorted(ALL))
def test_each_change_proves_that_it_acted(name: str) -> None:
    proof = changed().trainer.settings_proof[name]
    assert proof["value"] == ALL[name]
    assert proof["acted"], proof
    assert proof["proof"]


def test_switches_are_seen_as_they_stand() -> None:
    switches = unchanged().trainer.facts["switches"]
    assert switches["anomaly"] is True
    assert switches["threads"] == 1
    assert switches["parameters"] == 2
    assert switches["parameter_dtypes"] == ["float32"]
    assert switches["fused"] is None


def test_a_change_that_cannot_be_made_says_why() -> None:
    found = trial(
        (*WORDS[:3], "--workers", "0"),
        *PLAN,
        settings={"persistent_workers": True, "no_such_thing": 1, "default_dtype": "float3"},
    )
    assert found.result.code == 0
    proofs = found.trainer.settings_proof
    assert not any(proof["acted"] for proof in proofs.values())
    assert "without workers" in proofs["persistent_workers"]["proof"]
    assert "knows no change" in proofs["no_such_thing"]["proof"]
    assert "could not be made" in proofs["default_dtype"]["proof"]


def test_a_stream_is_not_given_workers() -> None:
    found = trial((*WORDS[:3], "--trouble", "stream"), *PLAN, settings={"loader_workers": 2})
    proof = found.trainer.settings_proof["loader_workers"]
    assert not proof["acted"]
    assert "stream" in proof["proof"]
    assert [one.workers for one in found.trainer.loaders] == [0]
