"""An arm of an experiment: the same command under some knobs, run several times in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Arm:
    """What is different in this arm. settings: value by knob. environment: variables besides."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def with_knob(self, knob: str, value: Any, environment: Mapping[str, str]) -> Arm:
        """Return this arm with one knob more."""
        return Arm({**self.settings, knob: value}, {**self.environment, **environment})

    def without(self, knob: str, environment: Mapping[str, str]) -> Arm:
        """Return this arm with one knob less, and without that knob's variables."""
        left = {key: value for key, value in self.settings.items() if key != knob}
        return Arm(left, {k: v for k, v in self.environment.items() if k not in environment})

    @property
    def says(self) -> str:
        """Return it in words."""
        if not self.settings:
            return "as it stands"
        return ", ".join(f"{knob} = {value}" for knob, value in self.settings.items())


@dataclass(frozen=True)
class ArmRun:
    """One run of an arm.

    nth: of all runs of the experiment, from 0. spans_ns: wall time of consecutive stretches of
    the same number of steps, all that lies between the steps included; the stretches of two runs
    of one experiment hold the same work. steps: in all stretches together. start_s: from the start
    of the command to the end of the first step. proofs: by knob, ``{"acted", "proof"}``.
    failed: why there are no spans, in words; None where there are. others_share: of the cores, what
    other programs used meanwhile (0-1); None where that is not known. says, asked_steps: what it
    was made for, and how many steps it was to measure.
    """

    arm: Arm
    nth: int
    spans_ns: tuple[int, ...]
    steps: int
    start_s: float | None
    proofs: Mapping[str, Any]
    failed: str | None = None
    others_share: float | None = None
    says: str = ""
    asked_steps: int = 0
    accounts: Mapping[str, int] = field(default_factory=dict)
    """Nanoseconds of the whole window by step phase and run phase."""

    @property
    def total_ns(self) -> int:
        """Return the wall time of all stretches."""
        return sum(self.spans_ns)

    @property
    def step_ns(self) -> float | None:
        """Return the mean wall time per step; None where there is none."""
        return self.total_ns / self.steps if self.steps else None

    def acted(self, knob: str) -> bool:
        """Tell whether the knob made a difference, by its own proof."""
        proof = self.proofs.get(knob)
        return isinstance(proof, Mapping) and bool(proof.get("acted"))

    def proof(self, knob: str) -> str:
        """Return the proof in words."""
        proof = self.proofs.get(knob)
        words = proof.get("proof") if isinstance(proof, Mapping) else None
        return str(words or "the training process said nothing of it")
