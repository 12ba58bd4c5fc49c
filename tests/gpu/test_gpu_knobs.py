"""Knobs on a real GPU: they act, train the same within their class, and are undone."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from gpu.trainings import KINDS, Training
from hotlap.knobs import catalogue
from hotlap.knobs.target import Target
from hotlap.sites.patches import Patches

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.xdist_group("gpu"),
]

KNOBS = (
    ("autocast", "bfloat16", KINDS),
    ("matmul_precision", "high", KINDS),
    ("channels_last", True, ("cnn",)),
    ("cudnn_benchmark", True, ("cnn",)),
    ("fused_optimizer", True, KINDS),
    ("pinned_memory", True, KINDS),
    ("compile", "default", KINDS),
)
STEPS = 6
TOLERANCE = {"identical": 0.0, "rounding": 0.01, "reduced": 0.1}
"""Relative difference of the losses of six steps, by class."""


def trained(kind: str, settings: dict[str, Any]) -> tuple[list[float], dict[str, Target]]:
    """Return losses and targets of a training under knobs, which are undone afterwards."""
    patches = Patches()
    targets = {name: Target(name, value, patches) for name, value in settings.items()}
    try:
        for name in sorted(settings, key=catalogue.KNOBS.index):
            catalogue.load(name).apply(targets[name], settings[name])
        return Training(kind, "cuda", width=128, size=32).losses(STEPS), targets
    finally:
        patches.undo()
        torch._dynamo.reset()


def close(found: list[float], expected: list[float], numerics: str) -> bool:
    return all(
        math.isclose(one, other, rel_tol=TOLERANCE[numerics], abs_tol=TOLERANCE[numerics] / 10)
        for one, other in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [(name, value, kind) for name, value, kinds in KNOBS for kind in kinds],
)
def test_a_knob_acts_and_trains_the_same_within_its_class(name: str, value: Any, kind: str) -> None:
    plain, _ = trained(kind, {})
    found, targets = trained(kind, {name: value})
    proof = targets[name].proof()
    assert proof["acted"], proof
    numerics = catalogue.load(name).NUMERICS[0]
    again, _ = trained(kind, {})
    if numerics == "identical" and again != plain:
        numerics = "rounding"  # the GPU itself adds up in varying order
    assert close(found, plain, numerics), (found, plain)
    assert close(again, plain, "rounding"), "what the knob changed is still there"


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_them_together(kind: str) -> None:
    plain, _ = trained(kind, {})
    settings = {name: value for name, value, kinds in KNOBS if kind in kinds}
    found, targets = trained(kind, settings)
    assert [name for name, one in targets.items() if not one.proof()["acted"]] == []
    assert close(found, plain, "reduced")


def test_pinned_batches_do_not_wait_for_their_copies() -> None:
    """torch's own debug mode raises where the host waits for the device."""
    patches = Patches()
    target = Target("pinned_memory", True, patches)
    catalogue.load("pinned_memory").apply(target, True)
    try:
        training = Training("cnn", "cuda", width=64, size=32)
        training.step()
        torch.cuda.set_sync_debug_mode("error")
        for _ in range(3):
            training.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
        patches.undo()
