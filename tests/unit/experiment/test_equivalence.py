"""Two recorded trainings: the same ones pass, and each planted bug is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from hotlap.experiment.equivalence import CLASSES, sameness
from hotlap.values.trace import (
    EpochTrace,
    GradientTrace,
    ParameterTrace,
    StepTrace,
    TrainingTrace,
)

STEPS: Final = 16
HYPER: Final = ({"class": "SGD", "momentum": 0.9, "parameters": 3, "weight_decay": 0.01},)


def made(**changes: Any) -> TrainingTrace:
    """Make a training of 16 steps with two epochs of 8 batches."""
    plain = TrainingTrace(
        steps_ended=STEPS,
        ended="steps",
        batches=tuple(f"batch{at % 8}of{at // 8}" for at in range(STEPS)),
        epochs=tuple(EpochTrace(0, at * 8, 8, True, 64, 64, "rows") for at in range(2)),
        losses=tuple(2.0 - 0.05 * at for at in range(STEPS)),
        steps=tuple(StepTrace(0, 0, (0.1,), at + 1) for at in range(STEPS)),
        hyperparameters=(json.dumps(HYPER),),
        parameters=tuple(
            ParameterTrace(0, at, (4, 2), "float32", True, 1.0 + at, 2.0 + at) for at in range(3)
        ),
        gradients=(GradientTrace(0, (1.0, 2.0, 2.0), (1.0, -2.0, 0.5, 1.5)),),
        buffers_early={"0.bn.running_mean": 0.5, "0.bn.num_batches_tracked": 3.0},
        buffers={"0.bn.running_mean": 0.7, "0.bn.num_batches_tracked": 16.0},
        state_keys="keys",
        rng_first={"torch": "a"},
        rng={"torch": "b"},
    )
    return replace(plain, **changes)


def scaled(trace: TrainingTrace, by: float) -> TrainingTrace:
    """Return a training whose losses and gradients are so many times those of another."""
    gradients = tuple(
        replace(
            one,
            norms=tuple(None if norm is None else norm * by for norm in one.norms),
            sketch=tuple(value * by for value in one.sketch),
        )
        for one in trace.gradients
    )
    return replace(trace, losses=tuple(one * by for one in trace.losses), gradients=gradients)


def skipping() -> TrainingTrace:
    """Return a training that leaves out its fourth step."""
    steps = tuple(StepTrace(0, 0, (0.1,), at + 1 + (at >= 3)) for at in range(STEPS))
    return made(steps=steps)


def without_decay() -> TrainingTrace:
    """Return a training that lost its weight decay."""
    return made(hyperparameters=(json.dumps([{**HYPER[0], "weight_decay": 0.0}]),))


def at_another_rate() -> TrainingTrace:
    """Return a training whose rate changes at its fourth step."""
    plain = made()
    steps = tuple(
        replace(one, lr=(0.05,)) if at >= 3 else one for at, one in enumerate(plain.steps)
    )
    return replace(plain, steps=steps)


def frozen() -> TrainingTrace:
    """Return a training that does not train one parameter."""
    plain = made()
    return replace(
        plain, parameters=(replace(plain.parameters[0], moved=False), *plain.parameters[1:])
    )


def twice_normalised() -> TrainingTrace:
    """Return a training that updates its BatchNorm statistics twice a step."""
    return made(
        buffers_early={"0.bn.running_mean": 0.9, "0.bn.num_batches_tracked": 6.0},
        buffers={"0.bn.running_mean": 0.9, "0.bn.num_batches_tracked": 32.0},
    )


def without_clearing() -> TrainingTrace:
    """Return a training whose gradients pile up: it goes astray from its second step on."""
    plain = made()
    return replace(
        plain,
        losses=(
            plain.losses[0],
            *(one * (1 + 0.3 * at) for at, one in enumerate(plain.losses[1:], 1)),
        ),
    )


def in_another_order() -> TrainingTrace:
    """Return a training with its batches turned round."""
    return made(batches=tuple(reversed(made().batches)))


BUGS: Final[Mapping[str, tuple[Callable[[], TrainingTrace], str]]] = {
    "halved": (lambda: scaled(made(), 0.5), "loss"),
    "skip": (skipping, "step 4: it came after 5 backward passes, not 4"),
    "decay": (without_decay, "step 1: weight decay 0.01 became 0.0"),
    "rate": (at_another_rate, "step 4: learning rate 0.1 became 0.05"),
    "frozen": (frozen, "parameter 0 (4x2) is not trained any more"),
    "norm": (twice_normalised, "after 3 steps: bn.num_batches_tracked 3 became 6"),
    "zero_grad": (without_clearing, "loss"),
}


@pytest.mark.parametrize("numerics", CLASSES)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_named(bug: str, numerics: str) -> None:
    make, words = BUGS[bug]
    found = sameness([made(), made()], make(), numerics, made(), scaled(made(), 1.01))
    assert found.word.startswith("differs: "), found
    assert words in found.word


@pytest.mark.parametrize("numerics", CLASSES[:3])
def test_another_order_of_batches_differs(numerics: str) -> None:
    found = sameness([made()], in_another_order(), numerics)
    assert found.word == ("differs: batch 1 is another one: the same batches came in another order")


def test_another_order_of_batches_may_be_resampled() -> None:
    found = sameness([made()], in_another_order(), "resampled")
    assert found.word == "not distinguishable in 16 steps"


@pytest.mark.parametrize("numerics", CLASSES)
def test_the_same_training_passes(numerics: str) -> None:
    found = sameness([made(), made()], made(), numerics, made(), made())
    word = "identical" if numerics == "identical" else "not distinguishable in 16 steps"
    assert found.word == word
    assert all(one.passed is not False for one in found.checks)


def test_rounding_differs_by_little_only() -> None:
    near = scaled(made(), 1 + 1e-7)
    assert sameness([made()], near, "identical").word.startswith("differs: backward pass 1: loss")
    assert sameness([made()], near, "rounding").word == "not distinguishable in 16 steps"
    far = scaled(made(), 1 + 1e-4)
    assert sameness([made()], far, "rounding").word.startswith("differs: the first loss is off")


def test_a_yardstick_widens_what_rounding_may_do() -> None:
    far = scaled(made(), 1 + 1e-4)
    found = sameness([made()], far, "rounding", perturbed=scaled(made(), 1 + 5e-5))
    assert found.word == "not distinguishable in 16 steps"


def test_fewer_bits_are_held_against_perturbed_parameters() -> None:
    far = scaled(made(), 1 + 5e-3)
    yardstick = scaled(made(), 1 + 4e-3)
    assert sameness([made()], far, "reduced", yardstick).word == "not distinguishable in 16 steps"
    found = sameness([made()], scaled(made(), 1.03), "reduced", yardstick)
    assert found.word.startswith("differs: the first loss is off by 3.0e-02")


def test_what_unchanged_runs_differ_in_is_not_held_against_it() -> None:
    drawn = made(batches=tuple(f"other{at}" for at in range(STEPS)), rng={"torch": "c"})
    found = sameness([made(), drawn], drawn, "identical")
    assert found.word == "not distinguishable in 16 steps"
    check = next(one for one in found.checks if one.name == "the batches")
    assert check.passed is None
    assert check.says.startswith("two runs of the unchanged command differ there too")


def test_losses_that_are_not_reproducible_are_compared_within_their_spread() -> None:
    again = scaled(made(), 1 + 1e-6)
    found = sameness([made(), again], scaled(made(), 1 + 2e-6), "identical")
    assert found.word == "not distinguishable in 16 steps"
    halved = sameness([made(), again], scaled(made(), 0.5), "identical")
    assert halved.word.startswith("differs: the first loss is off by 5.0e-01")


def test_unshared_workers_give_samples_more_than_once() -> None:
    longer = tuple(EpochTrace(0, at * 16, 16, True, 128, 64, "x") for at in range(1))
    found = sameness([made()], made(epochs=longer), "resampled")
    assert found.word == "differs: epoch 1: 8 batches became 16"
    twice = tuple(EpochTrace(0, at * 8, 8, True, 64, 40, "x") for at in range(2))
    found = sameness([made()], made(epochs=twice), "resampled")
    assert found.word == "differs: epoch 1: 24 of 64 samples came more than once"


def test_a_recording_that_was_cut_short_is_not_called_identical() -> None:
    short = made(steps_ended=12, ended="seconds", losses=made().losses[:12])
    assert sameness([made()], short, "identical").word == "not distinguishable in 12 steps"


def test_a_training_that_ends_early_differs() -> None:
    found = sameness([made()], made(steps_ended=12, ended="run ended"), "identical")
    assert "the training ended after 12 steps, where the unchanged one had 16" in found.word


def test_without_steps_nothing_is_known() -> None:
    found = sameness([TrainingTrace(0, "run ended")], made(), "identical")
    assert found.word.startswith("unknown, because")


def test_without_losses_and_parameters_nothing_is_told() -> None:
    bare = TrainingTrace(STEPS, "steps")
    assert sameness([bare], bare, "identical").word.startswith("unknown, because too little")


def test_a_gradient_that_is_gone_is_named() -> None:
    gone = made(gradients=(GradientTrace(0, (1.0, None, 2.0), (1.0, -2.0, 0.5, 1.5)),))
    for numerics in ("identical", "rounding", "reduced"):
        found = sameness([made()], gone, numerics)
        assert found.word == "differs: first step: parameter 1 has no gradient any more"


def test_what_is_no_number_is_the_same_as_itself() -> None:
    lost = made(losses=(float("nan"),) * STEPS)
    assert sameness([lost], lost, "identical").word == "identical"
    for numerics in CLASSES:
        assert sameness([made()], lost, numerics).word.startswith("differs"), numerics


def test_a_trace_survives_its_json_form() -> None:
    assert TrainingTrace.from_dict(json.loads(json.dumps(made().to_dict()))) == made()


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ValueError, match="no class"):
        sameness([made()], made(), "magic")
    with pytest.raises(ValueError, match="no run"):
        sameness([], made(), "identical")
