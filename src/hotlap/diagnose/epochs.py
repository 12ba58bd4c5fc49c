"""Runs whose epochs are longer than what was watched: with their share of an epoch's end."""

from __future__ import annotations

from dataclasses import replace

from hotlap.values.facts import EpochEnd, Facts, Measured
from hotlap.values.summary import Part


def with_epoch_ends(facts: Facts) -> Facts:
    """Return the facts as if each watched step had brought its part of an epoch's end.

    The time between two epochs of n steps is divided by n: of 300 watched steps, of an epoch of
    3,000, a tenth of it is added to what was watched. Facts without such an end are returned as
    they are.
    """
    if not isinstance(facts.epoch_end, Measured) or not isinstance(facts.profile, Measured):
        return facts
    end: EpochEnd = facts.epoch_end.value
    weight = facts.counts.get("steps", 0.0) / end.steps if end.steps else 0.0
    if weight <= 0.0:
        return facts
    phases = dict(facts.run.phases)
    for name, ns in end.phases.items():
        phases[name] = Part(round(ns * weight), None)
    sampled = {name: sum(one.ns for one in end.profile if one.phase == name) for name in end.phases}
    entries = []
    for one in end.profile:
        if not sampled.get(one.phase):
            continue
        # What the clocks say of a phase is divided as its samples are.
        scale = weight * end.phases[one.phase] / sampled[one.phase]
        parts = {
            name: None if value is None else round(value * scale)
            for name in ("ns", "working_ns", "blocked_ns", "runqueue_ns")
            for value in (getattr(one, name),)
        }
        entries.append(replace(one, over_time=(), **parts))  # type: ignore[arg-type]
    profile = replace(facts.profile, value=(*facts.profile.value, *entries))
    return replace(facts, run=replace(facts.run, phases=phases), profile=profile)
