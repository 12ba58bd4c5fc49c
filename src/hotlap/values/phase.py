"""Names of the spans that a training's wall time is divided into.

A *step phase* is an exclusive span inside one step; a *run phase* is a part of the whole run.
Both are plain strings, because they cross process and file boundaries.
"""

from __future__ import annotations

from typing import Final

STEP_PHASES: Final[tuple[str, ...]] = (
    "data_wait",
    "transfer",
    "forward",
    "backward",
    "optimizer",
    "communication",
    "logging",
    "other",
)
"""Exclusive parts of one step, in the order in which reports show them."""

CARVED_PHASES: Final[tuple[str, ...]] = ("evaluation", "checkpoint", "epoch_edge", "compile")
"""Run phases that happen between the first and the last step and are taken out of the step."""

RUN_PHASES: Final[tuple[str, ...]] = ("start_up", "steps", *CARVED_PHASES, "shut_down")
"""Parts of a whole run; their sum is its wall time."""

ACCOUNTS: Final[tuple[str, ...]] = STEP_PHASES + CARVED_PHASES
"""Order of the time accounts that a recorder keeps, one integer of nanoseconds each."""

WORKER_SPLIT: Final[tuple[str, ...]] = ("blocked", "cpu", "runqueue", "collate", "ipc")
"""Parts of the time in which a loader prepares one batch."""

RULES: Final[tuple[str, ...]] = ("", "backward", "loader", "optimizer", "explicit")
"""Rules that end a step, by the number that stands in a record: a higher one, once seen, silences
those below it."""
