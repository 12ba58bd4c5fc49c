"""Plans made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotlap.values.comparison import Interval
from hotlap.values.finding import Bounds
from hotlap.values.plan import Choice, Plan

HERE: Mapping[str, Any] = {
    "cpu_model": "Made By Hand 9000",
    "cores_allowed": 8.0,
    "gpus": ["One GPU"],
    "world_size": 1,
    "torch": "2.13.0",
}


def choice(knob: str = "anomaly_mode", value: Any = False, **fields: Any) -> Choice:
    """Return a knob of a plan."""
    given: dict[str, Any] = {
        "numerics": "identical",
        "predicted": Bounds(1.4, 1.8),
        "measured": Interval(1.5, 1.6, 1.7),
        "proof": "the script's switching it on was passed over",
        "environment": {},
        "snippet": f"{knob}({value})",
    }
    return Choice(knob, value, **(given | fields))


def plan(*choices: Choice, **fields: Any) -> Plan:
    """Return a plan for the machine ``HERE``."""
    given: dict[str, Any] = {
        "gain": Interval(1.5, 1.6, 1.7),
        "step_ns": (9_000_000, 12_000_000),
        "fingerprint": dict(HERE),
        "equivalence": "identical",
        "command": ("python", "train.py", "--lr", "0.1"),
        "made": "2026-01-01T00:00:00+00:00",
        "hotlap_version": "0.1",
    }
    return Plan(choices or (choice(),), **(given | fields))
