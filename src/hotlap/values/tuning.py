"""What ``hotlap tune`` found out: what was tried, what is kept, and what it brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hotlap.values.arm import ArmRun
from hotlap.values.comparison import Interval
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Diagnosis
from hotlap.values.plan import Plan

_UNTOLD: Final = Bounds(None, None)


@dataclass(frozen=True)
class Tried:
    """A knob with one value, and what became of it.

    word: ``kept``, ``rejected`` or ``offered`` (it helps, but its class is not allowed).
    predicted: before it was tried. measured: against the arm that it was added to; None where it
    was not run. because: why, in words. extra_start_s: by how much the start-up grew; 0 where it
    is counted with another knob's. beside: knobs that it was tried with.
    """

    knob: str
    value: Any
    numerics: str
    word: str
    because: str
    predicted: Bounds = _UNTOLD
    measured: Interval | None = None
    proof: str = ""
    extra_start_s: float | None = 0.0
    snippet: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """One comparison of two trainings. passed: None where it could not be made."""

    name: str
    passed: bool | None
    says: str


@dataclass(frozen=True)
class Sameness:
    """Whether the training under the plan is the same. word: in words, ``identical`` at best."""

    word: str
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Tuning:
    """The result of a search.

    baseline, tuned: the diagnosis of the command as it stands, and the last one under the plan;
    None where there was none. tried: in order. gain: of all kept knobs together, from runs in a
    fixed order; run_gain: what that is of the whole run, with its start and its end, None if its
    length is unknown. runs: all runs of all arms. noise: relative difference (0-1) that two runs of
    one arm may have, 95 %. pays_back_steps: steps until a longer start-up is earned; 0 if it is no
    longer. minimum_effect: what a gain must be at least. not_tried: knobs left when the budget was
    spent. notes: about the machine meanwhile, in words.
    """

    baseline: tuple[Facts, Diagnosis]
    tuned: tuple[Facts, Diagnosis] | None
    tried: tuple[Tried, ...]
    plan: Plan | None
    gain: Interval | None
    word: str
    runs: tuple[ArmRun, ...]
    noise: float | None
    sameness: Sameness
    pays_back_steps: int | None
    minimum_effect: float
    span: Mapping[str, Any] = field(default_factory=dict)
    not_tried: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    run_gain: Interval | None = None
