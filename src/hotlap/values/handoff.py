"""What the launcher tells the processes that it starts, in one file named by one variable."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

VARIABLE: Final = "HOTLAP_HANDOFF"
"""The only environment variable of our own: the path of the handoff file."""

FORMAT: Final = 1


@dataclass(frozen=True)
class Handoff:
    """The launcher's message to the inside.

    run_dir: absolute path of the run directory.
    package_dir: absolute path of the ``hotlap`` package folder to load inside.
    start_dir: absolute path of the start directory; source files are shown relative to it.
    started_ns: monotonic clock when the child was started.
    faults: sites whose hook is made to raise (fault injection; empty in real use).
    disabled: sites that are not installed.
    compiled: False: hooks in Python only, also where compiled ones are there.
    trial: what a trial does, the JSON form of ``values.trial.TrialPlan``; None in a plain run.
    knobs: value by knob of the plan that a plain run applies.
    """

    run_dir: str
    package_dir: str
    start_dir: str
    started_ns: int
    faults: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    compiled: bool = True
    trial: dict[str, Any] | None = None
    knobs: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def to_json(self) -> str:
        """Return the handoff as one JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Handoff:
        """Read a handoff; raises ValueError when the text is none or of another format."""
        raw = json.loads(text)
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            raise ValueError(f"not a handoff of format {FORMAT}: {text[:80]!r}")
        return cls(
            run_dir=raw["run_dir"],
            package_dir=raw["package_dir"],
            start_dir=raw["start_dir"],
            started_ns=raw["started_ns"],
            faults=tuple(raw.get("faults", ())),
            disabled=tuple(raw.get("disabled", ())),
            compiled=raw.get("compiled", True),
            trial=raw.get("trial"),
            knobs=dict(raw.get("knobs") or {}),
        )
