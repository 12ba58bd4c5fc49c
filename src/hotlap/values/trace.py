"""What one training did in its first steps, in numbers that another training can be held against.

Hashes are hexadecimal digests of 8 bytes. What was not seen is empty or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class EpochTrace:
    """One epoch of a training loader.

    loader: its ordinal. first: index of its first batch in ``TrainingTrace.batches``. batches: in
    it. complete: it went to its end. rows: samples whose content was looked at; distinct: how many
    of these differ. rows_hash: of the sorted hashes of the rows; None where there are none.
    """

    loader: int
    first: int
    batches: int
    complete: bool
    rows: int = 0
    distinct: int = 0
    rows_hash: str | None = None


@dataclass(frozen=True)
class StepTrace:
    """One step of an optimizer.

    optimizer: ordinal. hyperparameters: index into ``TrainingTrace.hyperparameters``. lr: per
    group. backwards: passes that had been made by then.
    """

    optimizer: int
    hyperparameters: int
    lr: tuple[float, ...]
    backwards: int


@dataclass(frozen=True)
class ParameterTrace:
    """One parameter of an optimizer, by the end. total, norm: of its values, in float64."""

    optimizer: int
    index: int
    shape: tuple[int, ...]
    dtype: str
    moved: bool
    total: float
    norm: float


@dataclass(frozen=True)
class GradientTrace:
    """The gradients at the first step of an optimizer.

    norms: per parameter; None where it had no gradient. sketch: fixed projections of all of them,
    whose dot products are those of the gradients, nearly.
    """

    optimizer: int
    norms: tuple[float | None, ...]
    sketch: tuple[float, ...]


@dataclass(frozen=True)
class TrainingTrace:
    """One training, up to ``steps_ended`` steps. ended: ``steps``, ``seconds`` or ``run ended``.

    batches: hash of each batch in order. losses: of each backward pass in order.
    hyperparameters: JSON texts without rates. buffers_early, buffers: sum by name after 3 steps,
    and at the end. state_keys: hash of the names and shapes of what the models hold.
    rng_first, rng: by generator, hash of its state after the first step, and at the end.
    """

    steps_ended: int
    ended: str
    batches: tuple[str, ...] = ()
    epochs: tuple[EpochTrace, ...] = ()
    losses: tuple[float, ...] = ()
    steps: tuple[StepTrace, ...] = ()
    hyperparameters: tuple[str, ...] = ()
    parameters: tuple[ParameterTrace, ...] = ()
    gradients: tuple[GradientTrace, ...] = ()
    buffers_early: Mapping[str, float] = field(default_factory=dict)
    buffers: Mapping[str, float] = field(default_factory=dict)
    state_keys: str | None = None
    rng_first: Mapping[str, str] = field(default_factory=dict)
    rng: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> TrainingTrace:
        """Read the JSON form; raises KeyError, TypeError or ValueError where it is none."""
        return cls(
            steps_ended=int(raw["steps_ended"]),
            ended=str(raw["ended"]),
            batches=tuple(map(str, raw.get("batches", ()))),
            epochs=tuple(EpochTrace(**one) for one in raw.get("epochs", ())),
            losses=tuple(map(float, raw.get("losses", ()))),
            steps=tuple(
                StepTrace(**{**one, "lr": tuple(map(float, one["lr"]))})
                for one in raw.get("steps", ())
            ),
            hyperparameters=tuple(map(str, raw.get("hyperparameters", ()))),
            parameters=tuple(
                ParameterTrace(**{**one, "shape": tuple(map(int, one["shape"]))})
                for one in raw.get("parameters", ())
            ),
            gradients=tuple(_gradient(one) for one in raw.get("gradients", ())),
            buffers_early=_numbers(raw.get("buffers_early", {})),
            buffers=_numbers(raw.get("buffers", {})),
            state_keys=raw.get("state_keys"),
            rng_first=_words(raw.get("rng_first", {})),
            rng=_words(raw.get("rng", {})),
        )


def _gradient(raw: Mapping[str, Any]) -> GradientTrace:
    return GradientTrace(
        int(raw["optimizer"]),
        tuple(None if one is None else float(one) for one in raw["norms"]),
        tuple(map(float, raw["sketch"])),
    )


def _numbers(raw: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in raw.items()}


def _words(raw: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in raw.items()}
