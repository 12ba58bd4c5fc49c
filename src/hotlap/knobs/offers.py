"""What all knobs ask alike: does a finding name it, was it tried, how much can it gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hotlap.values.facts import Facts, WhatIf
from hotlap.values.finding import Bounds, Finding
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import run_share

LEAST_GAIN: Final = 1.03
"""A speed-up of the run below this is not looked for: too little to tell from noise."""
NO_GAIN: Final = "tried by the diagnosis: no gain"


def judged(case: Case, name: str, share: float | None, offer: Offer) -> Offer | No:
    """Return an offer with what is known of its gain, or why it is not worth a try.

    share: part (0-1) of the run that is the knob's to save; None where it is not known.
    A finding that names the knob speaks for it; else a trial of the diagnosis, in which it acted;
    else the size of the share. Values that were tried in vain are left out.
    """
    values = [one for one in offer.values if not in_vain(case.facts, name, one)]
    if not values:
        return No(NO_GAIN)
    offer = replace(offer, values=tuple(_best_first(case.facts, name, values)), most=most(share))
    finding = named_by(case, name)
    if finding is not None:
        because = f"{finding.code} {finding.name}"
        return replace(offer, because=because, predicted=finding.predicted_speedup)
    tried = best_trial(case.facts, name)
    if tried is not None:
        because = f"tried by the diagnosis: {tried.ratio:.2f} times as fast"
        return replace(offer, because=because, predicted=of_the_run(case.facts, tried))
    if share is None:
        return No("how much of the time it could save is not known")
    if (offer.most or 1.0) < LEAST_GAIN:
        return No(f"only {share * 100:.1f} % of the time is its to save")
    return offer


def named_by(case: Case, name: str) -> Finding | None:
    """Return the first finding whose remedy names the knob, or None."""
    return next((one for one in case.findings if name in one.remedy.knobs), None)


def is_settled(facts: Facts, names: Sequence[str], value: Any) -> bool:
    """Tell whether the script itself sets one of these names to a value."""
    return any(one.name in names and one.value == value for one in facts.settings)


def in_vain(facts: Facts, name: str, value: Any) -> bool:
    """Tell whether the diagnosis has tried a value, which acted and brought nothing."""
    return any(
        one.change == name and one.value == value and one.acted and one.high < LEAST_GAIN
        for one in facts.what_ifs
    )


def best_trial(facts: Facts, name: str) -> WhatIf | None:
    """Return the diagnosis' best trial of a knob that acted and may have gained; None of none."""
    found = [
        one for one in facts.what_ifs if one.change == name and one.acted and one.high >= LEAST_GAIN
    ]
    return max(found, key=lambda one: one.ratio, default=None)


def most(share: float | None) -> float | None:
    """Return the speed-up of a run of which so much (0-1) goes away altogether."""
    return None if share is None else 1.0 / (1.0 - min(0.99, max(0.0, share)))


def no_variables(_value: Any, _environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a knob that needs none."""
    return {}


def _best_first(facts: Facts, name: str, values: list[Any]) -> list[Any]:
    tried = best_trial(facts, name)
    if tried is None or tried.value not in values or tried.low < 1.0:
        return values
    return [tried.value, *(one for one in values if one != tried.value)]


def of_the_run(facts: Facts, tried: WhatIf) -> Bounds:
    """Return the run's speed-up by a ratio of its steps."""
    steps = run_share(facts, "steps") or 1.0
    low, high = (1.0 / (1.0 - steps * (1.0 - 1.0 / max(1.0, x))) for x in (tried.low, tried.high))
    return Bounds(low, high)
