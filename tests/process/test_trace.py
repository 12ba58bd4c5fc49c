"""Trials that record a training: what is seen of real scripts, and which differ by a bug."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hotlap.experiment.equivalence import sameness
from hotlap.experiment.trials import Lab, Trial
from hotlap.experiment.watched import trainer
from hotlap.values.record import Process
from hotlap.values.trace import TrainingTrace
from hotlap.values.trial import TrialPlan

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "traced.py"
NORM = ("--norm",)

pytestmark = pytest.mark.xdist_group("trace")


def run(*words: str, bug: str = "", trace: int = 16, **settings: Any) -> Trial:
    """Record the script in a trial. settings: of the trial; ``seed=0`` where none is given."""
    folder = Path(tempfile.mkdtemp(prefix="traced-"))
    (folder / "run").mkdir()
    environ = {**os.environ, "BUG": bug}
    lab = Lab([sys.executable, str(SCRIPT), *words], environ, folder, folder / "run", way="open")
    plan = TrialPlan(trace=trace, trace_s=60.0, settings={"seed": 0, **settings})
    try:
        return lab.run("trace", plan, 120.0)
    finally:
        lab.close()


def process(trial: Trial) -> Process:
    """Return the process that trained, without any fault of ours."""
    assert trial.is_sound, trial.why_not()
    found = trainer(trial.record) if trial.record is not None else None
    assert found is not None, trial.tail
    assert not found.faults
    assert trial.record is not None
    assert not trial.record.damage
    return found


def traced(*words: str, bug: str = "", trace: int = 16, **settings: Any) -> TrainingTrace:
    """Return what a trial of the script recorded."""
    found = process(run(*words, bug=bug, trace=trace, **settings)).trace
    assert found is not None
    return found


@functools.cache
def unchanged() -> TrainingTrace:
    """Return the training with BatchNorm as it stands."""
    return traced(*NORM)


def test_two_runs_of_an_unseeded_script_are_identical() -> None:
    found = sameness([unchanged()], traced(*NORM), "identical")
    assert found.word == "identical"
    checks = {one.name: one.passed for one in found.checks}
    assert set(checks.values()) == {True}


def test_what_is_recorded_of_it() -> None:
    found = unchanged()
    assert (found.steps_ended, found.ended) == (16, "steps")
    assert len(found.batches) == len(found.losses) == len(found.steps) == 16
    first = found.epochs[0]
    assert (first.first, first.batches, first.complete) == (0, 8, True)
    assert (first.rows, first.distinct) == (60, 60)
    assert found.steps[0].lr == (0.1,)
    assert [one.shape for one in found.parameters][:2] == [(16, 8), (16,)]
    assert all(one.moved for one in found.parameters)
    assert found.buffers_early["0.1.num_batches_tracked"] == 3.0
    assert found.buffers["0.1.num_batches_tracked"] == 16.0
    assert {"torch", "random"} <= found.rng.keys()


@pytest.mark.parametrize(
    ("bug", "numerics", "words"),
    [
        ("halved", "reduced", "the first loss is off by 5.0e-01"),
        ("skip", "resampled", "step 4: it came after 5 backward passes, not 4"),
        ("decay", "reduced", "step 1: weight decay 0.01 became 0.0"),
        ("order", "identical", "batch 1 holds other samples: the same ones came in another order"),
        ("frozen", "rounding", "parameter 0 (16x8) is not trained any more"),
        ("bn", "resampled", "num_batches_tracked 3 became 6"),
        ("lr", "identical", "step 1: learning rate 0.1 became 0.05"),
        ("no_zero", "rounding", "one of the first 5 losses is off by"),
    ],
)
def test_planted_bugs_are_named(bug: str, numerics: str, words: str) -> None:
    found = sameness([unchanged()], traced(*NORM, bug=bug), numerics)
    assert found.word.startswith("differs: ")
    assert words in found.word


def test_workers_give_the_same_batches_over_two_epochs() -> None:
    alone, shared = traced(trace=20), process(run(trace=20, loader_workers=2))
    assert shared.trace is not None
    assert shared.settings_proof["loader_workers"]["acted"]
    assert shared.facts["switches"]["dataset_draws"] == []
    assert alone.batches == shared.trace.batches
    assert [one.complete for one in shared.trace.epochs] == [True, True, False]
    assert sameness([alone], shared.trace, "identical").word == "identical"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_a_data_set_draws_is_named(workers: str) -> None:
    found = process(run("--draws", "torch,numpy,random", "--workers", workers))
    assert found.facts["switches"]["dataset_draws"] == ["numpy", "random", "torch"]


def test_a_data_set_that_draws_nothing_is_known() -> None:
    assert process(run()).facts["switches"]["dataset_draws"] == []


def test_perturbed_parameters_act_before_the_first_loss() -> None:
    found = process(run(*NORM, perturb=1e-3))
    assert found.settings_proof["perturb"]["acted"]
    assert found.trace is not None
    base = unchanged()
    assert found.trace.batches == base.batches
    assert found.trace.rng == base.rng
    assert 0 < abs(found.trace.losses[0] / base.losses[0] - 1) < 0.1


def test_another_seed_shuffles_otherwise_unless_the_script_seeds_itself() -> None:
    assert traced(*NORM, seed=1).batches != unchanged().batches
    assert traced("--seed", "3", seed=1).batches == traced("--seed", "3").batches


def test_a_loader_that_is_made_anew_for_each_epoch_loses_no_batch() -> None:
    found = traced("--anew", trace=20)
    assert len(found.batches) == 20
    assert [one.first for one in found.epochs] == [0, 8, 16]
    assert found.batches == traced(trace=20).batches


def test_a_gan_without_a_loader() -> None:
    first, second = traced("--style", "gan"), traced("--style", "gan")
    assert {one.optimizer for one in first.steps} == {0, 1}
    assert [one.optimizer for one in first.gradients] == [0, 1]
    assert not first.batches
    assert sameness([first], second, "identical").word == "identical"


def test_closures_of_lbfgs() -> None:
    first, second = traced("--style", "lbfgs"), traced("--style", "lbfgs")
    assert len(first.losses) > len(first.steps) == 16
    assert sameness([first], second, "identical").word == "identical"


def test_a_script_that_ends_first_says_so() -> None:
    found = traced("--epochs", "1", trace=40)
    assert (found.steps_ended, found.ended) == (8, "run ended")
    assert all(one.moved for one in found.parameters)
    assert found.state_keys is not None


def test_no_trial_records_a_training_unasked() -> None:
    folder = Path(tempfile.mkdtemp(prefix="traced-"))
    (folder / "run").mkdir()
    lab = Lab([sys.executable, str(SCRIPT)], os.environ, folder, folder / "run", way="open")
    trial = lab.run("plain", TrialPlan(), 120.0)
    lab.close()
    assert process(trial).trace is None
