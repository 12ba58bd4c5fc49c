"""Cases and targets that the tests of knobs share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hotlap.knobs import catalogue
from hotlap.knobs.target import Target
from hotlap.sites.patches import Patches
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Finding, Remedy
from hotlap.values.knob import Case, No, Offer
from hotlap.values.summary import LoaderSummary
from unit.diagnose.made import HEALTHY_STEP, facts, loader, run

WAITING = {"data_wait": 0.6, "forward": 0.15, "backward": 0.2}


def case(
    step: Mapping[str, float] = HEALTHY_STEP,
    *,
    phases: Mapping[str, float] | None = None,
    loaders: tuple[LoaderSummary, ...] = (loader(),),
    cores: float = 4.0,
    device: str = "cpu",
    machine: Mapping[str, Any] | None = None,
    **more: Any,
) -> Case:
    """Return a case made by hand, without findings and environment. more: fields of the facts."""
    summary = run(step, phases=phases, loaders=loaders, cores=cores)
    trainers = tuple(replace(one, device=device) for one in summary.trainers)
    described = replace(summary.machine, facts=dict(machine or {}))
    summary = replace(summary, trainers=trainers, machine=described)
    made: Facts = facts(summary, **more)
    return Case(made, (), {})


def finding(knob: str, low: float = 1.2, high: float = 1.5) -> Finding:
    """Return a finding whose remedy is a knob."""
    return Finding(
        code="HL999",
        name="made-up",
        phase="forward",
        scope="step",
        status="proven",
        recoverable_share=Bounds(0.2, 0.4),
        locations=(),
        evidence=(),
        remedy=Remedy("knob", (knob,), "nothing"),
        say="It is slow. Turn the knob.",
        predicted_speedup=Bounds(low, high),
    )


def offered(name: str, given: Case) -> Offer:
    """Return what a knob offers; it must."""
    answer = catalogue.load(name).applies(given)
    assert isinstance(answer, Offer), answer
    return answer


def refused(name: str, given: Case) -> No:
    """Return why a knob does not apply; it must not."""
    answer = catalogue.load(name).applies(given)
    assert isinstance(answer, No), answer
    return answer


def put_on(name: str, value: Any, patches: Patches, **more: Any) -> Target:
    """Apply a knob in this process and return its target. more: arguments of Target."""
    target = Target(name, value, patches, **more)
    catalogue.load(name).apply(target, value)
    return target
