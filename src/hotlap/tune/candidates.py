"""Every knob is asked whether it applies; those that do are put in order, the others say why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotlap.knobs import catalogue
from hotlap.tune.interactions import companions
from hotlap.values.comparison import MINIMUM_EFFECT
from hotlap.values.finding import Bounds
from hotlap.values.knob import NUMERICS, Case, No, Offer, within
from hotlap.values.tuning import Tried


@dataclass(frozen=True)
class Candidate:
    """A knob that may help here, and the value to try. beside: knobs that are tried with it."""

    knob: str
    value: Any
    offer: Offer
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """Return value by knob."""
        return {self.knob: self.value, **self.beside}

    @property
    def says(self) -> str:
        """Return it in words."""
        return ", ".join(f"{knob} = {value}" for knob, value in self.settings.items())

    @property
    def numerics(self) -> str:
        """Return the strongest class among its knobs."""
        classes = [self.offer.numerics]
        classes += [catalogue.load(knob).NUMERICS[0] for knob in self.beside]
        return max(classes, key=NUMERICS.index)

    @property
    def worth(self) -> float:
        """Return the speed-up to hope for, to put candidates in order: predicted before hoped."""
        predicted = self.offer.predicted
        if predicted.low is not None and predicted.high is not None:
            return 100.0 + math.sqrt(max(1.0, predicted.low) * max(1.0, predicted.high))
        return min(self.offer.most or 1.0, 99.0)


def candidates(
    case: Case, most: str, insisted: Mapping[str, Any]
) -> tuple[list[Candidate], list[Tried]]:
    """Return what to try, the most promising first, and what does not apply, with the reason.

    most: the strongest class of numerics that may be applied. insisted: values by knob that the
    user asked for, which are tried first and against all advice. Knobs that are on are not asked.
    """
    found: list[Candidate] = []
    refused: list[Tried] = []
    for name in catalogue.KNOBS:
        if name in case.applied:
            continue
        answer = catalogue.load(name).applies(case)
        if name in insisted:
            offer = _insisted(name, answer)
            if within(offer.numerics, most):
                found.append(Candidate(name, insisted[name], offer))
            else:
                beyond = f"asked for, but its class needs --numerics {offer.numerics}"
                refused.append(_rejected(name, offer, beyond))
        elif isinstance(answer, No):
            refused.append(Tried(name, None, "identical", "rejected", answer.because))
        elif why := _too_small(answer):
            refused.append(_rejected(name, answer, why))
        else:
            for value in answer.values:
                found.append(Candidate(name, value, answer))
                if beside := companions(name, value, case):
                    found.append(Candidate(name, value, answer, beside))
    allowed = [one for one in found if within(one.numerics, most)]
    return (
        sorted(
            allowed, key=lambda one: (one.knob not in insisted, -one.worth)
        ),  # stable: the values of a knob stay in its own order
        refused,
    )


def stronger(case: Case, most: str) -> list[Candidate]:
    """Return what could be offered though its class is not allowed: one value of each knob."""
    found = []
    for name in catalogue.KNOBS:
        answer = catalogue.load(name).applies(case) if name not in case.applied else None
        if isinstance(answer, Offer) and answer.values and not within(answer.numerics, most):
            found.append(Candidate(name, answer.values[0], answer))
    return sorted(found, key=lambda one: -one.worth)


def _too_small(offer: Offer) -> str | None:
    """Say why a knob is not worth a run: what it can save at most is below the minimum."""
    if offer.most is not None and offer.most < 1.0 + MINIMUM_EFFECT:
        return f"it could save {1 - 1 / offer.most:.0%} of the time at most"
    return None


def _rejected(name: str, offer: Offer, why: str) -> Tried:
    value = offer.values[0] if offer.values else None
    return Tried(name, value, offer.numerics, "rejected", why, offer.predicted)


def _insisted(name: str, answer: Offer | No) -> Offer:
    """Return the offer of a knob that the user insists on: of its strongest class, if in doubt."""
    if isinstance(answer, Offer):
        return answer
    strongest = max(catalogue.load(name).NUMERICS, key=NUMERICS.index)
    return Offer((), strongest, f"asked for, though: {answer.because}", Bounds(None, None))


def names_of(found: Iterable[Candidate]) -> tuple[str, ...]:
    """Return the knobs of some candidates, each once, in order."""
    return tuple(dict.fromkeys(one.knob for one in found))
