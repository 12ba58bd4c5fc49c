"""Which of a file's plans a run applies here, and which of its knobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hotlap.errors import WrongUse
from hotlap.knobs import catalogue
from hotlap.machine.facts import machine_facts
from hotlap.tune.fingerprint import HARDWARE, differences, hardware
from hotlap.tune.plan_file import read
from hotlap.values.plan import Choice, Plan

MACHINES_OWN: Final = frozenset(
    "allocator autocast channels_last compile cuda_allocator cudnn_benchmark foreach_optimizer "
    "fused_optimizer intra_op_threads loader_workers matmul_precision pinned_memory "
    "prefetch_depth worker_threads".split()
)
"""Knobs that help on one kind of machine and hurt on another: never applied unmeasured."""


@dataclass(frozen=True)
class Applied:
    """What a run is told. left_out: knobs that are not applied, with the reason."""

    settings: Mapping[str, Any]
    environment: Mapping[str, str]
    left_out: Mapping[str, str]
    differences: tuple[str, ...]
    plan: Plan
    plan_file: str


def applied_here(file: str, environ: Mapping[str, str]) -> Applied:
    """Return what of a plan's file is applied on this machine.

    environ: the user's. Raises WrongUse where the file is no plan, or holds none.
    """
    return choose(read(Path(file)), hardware(machine_facts(())), environ, file)


def choose(
    plans: Sequence[Plan], here: Mapping[str, Any], environ: Mapping[str, str], file: str
) -> Applied:
    """Return the plan that was measured on a machine like this, or the nearest one.

    here: the fingerprint as far as it is known. environ: the user's; what is set there stays.
    Raises WrongUse where the file holds no plan, or a knob that this hotlap does not know.
    """
    if not plans:
        raise WrongUse(f"{file} holds no plan; `hotlap tune COMMAND` makes one")
    plan = min(plans, key=lambda one: len(differences(one.fingerprint, here)))
    unlike = differences(plan.fingerprint, here)
    elsewhere = any(key in HARDWARE for key in unlike)
    left_out: dict[str, str] = {}
    kept: list[Choice] = []
    for one in plan.choices:
        if one.knob not in catalogue.KNOBS:
            raise WrongUse(
                f"{file} has a knob {one.knob!r} that this hotlap does not know; update it "
                "(pip install -U hotlap) or tune anew"
            )
        taken = [key for key, value in one.environment.items() if environ.get(key, value) != value]
        if elsewhere and one.knob in MACHINES_OWN:
            left_out[one.knob] = "what it brings depends on the machine, and must be measured again"
        elif taken:
            left_out[one.knob] = f"{taken[0]} is set in the environment, which is your word"
        else:
            kept.append(one)
    return Applied(
        {one.knob: one.value for one in kept},
        {key: value for one in kept for key, value in one.environment.items()},
        left_out,
        tuple(unlike.values()),
        plan,
        file,
    )
