"""What comes at the end of an epoch that was longer than what was watched, in words."""

from __future__ import annotations

from typing import Any

from hotlap.report.sections import NAMES
from hotlap.report.units import duration, many, share
from hotlap.values.facts import Facts, Measured


def epoch_end_share(facts: Facts) -> float | None:
    """Return the share (0-1) of an epoch that its end takes; None where it was not seen."""
    if not isinstance(facts.epoch_end, Measured) or not facts.run.trainers:
        return None
    end, mean_ns = facts.epoch_end.value, facts.run.trainers[0].step.mean_ns
    if not mean_ns:
        return None
    took = sum(end.phases.values())
    return took / (took + end.steps * mean_ns)


def epoch_end_words(facts: Facts) -> str | None:
    """Return the end of an epoch in a sentence; None where it was not seen."""
    part = epoch_end_share(facts)
    if part is None or not isinstance(facts.epoch_end, Measured):
        return None
    end = facts.epoch_end.value
    rows = sorted(end.phases.items(), key=lambda pair: -pair[1])
    parts = ", ".join(f"{NAMES[name]} {duration(ns)}" for name, ns in rows)
    least = "" if end.whole else "at least "
    steps = many(round(end.steps), "step")
    return f"after {steps}: {least}{parts}; {share(part)} of an epoch, seen by ending one early"


def epoch_end_json(facts: Facts) -> dict[str, Any] | None:
    """Return the end of an epoch for the JSON form; null where it was not seen."""
    if not isinstance(facts.epoch_end, Measured):
        return None
    end = facts.epoch_end.value
    return {
        "steps": end.steps,
        "phases": {name: {"ns": ns} for name, ns in end.phases.items()},
        "share": epoch_end_share(facts),
        "whole": end.whole,
    }
