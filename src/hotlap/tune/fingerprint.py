"""Where a plan holds: the hardware and the software that its figures were measured on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hotlap.values.summary import RunSummary

HARDWARE: Final = ("cpu_model", "cores_allowed", "gpus", "world_size")
SOFTWARE: Final = ("torch",)
_SAID: Final = {
    "cpu_model": "processor",
    "cores_allowed": "cores that it may use",
    "gpus": "GPUs",
    "world_size": "ranks",
    "torch": "torch",
}


def fingerprint(run: RunSummary) -> dict[str, Any]:
    """Return the fingerprint of a run, without what is not known; no paths, no names of hosts."""
    first = run.trainers[0] if run.trainers else None
    found = {
        **hardware(run.machine.facts),
        "world_size": first.world_size if first is not None else None,
        "torch": first.torch if first is not None else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def hardware(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known before anything runs. facts: ``machine.facts.machine_facts``."""
    gpus = [str(one.get("name")) for one in facts.get("gpus") or ()]
    found = {
        "cpu_model": facts.get("cpu_model"),
        "cores_allowed": facts.get("cores_allowed"),
        "gpus": gpus,
    }
    return {key: value for key, value in found.items() if value is not None}


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, str]:
    """Return in words what differs between two fingerprints, by key; what one lacks is no part."""
    return {
        key: f"{_SAID[key]}: {one[key]} when it was measured, {other[key]} now"
        for key in (*HARDWARE, *SOFTWARE)
        if key in one and key in other and one[key] != other[key]
    }
