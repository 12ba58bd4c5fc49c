"""One thing that a machine or an environment offers or lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

State = Literal["good", "limited", "absent", "unknown"]

STATES: Final[tuple[State, ...]] = ("good", "limited", "absent", "unknown")


@dataclass(frozen=True)
class Check:
    """What we saw and what follows from it.

    name: what was looked at; the same on every machine. Several disks share one name.
    state: ``good``; ``limited``: there, but it holds a training back or can; ``absent``;
    ``unknown``: could not be found out, ``seen`` says why.
    consequence: one line, what it means for a training. fix: what to do; None: nothing to do.
    """

    name: str
    state: State
    seen: str
    consequence: str
    fix: str | None = None


def size(number_bytes: int) -> str:
    """Return a size in words with two or three digits: ``512 MiB``, ``1.5 GiB``."""
    number, unit = float(number_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if number < 1000 or unit == "PiB":
            break
        number /= 1024
    return f"{number:.1f} {unit}" if number < 10 and unit != "B" else f"{number:.0f} {unit}"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number of things: ``1 worker``, ``2 workers``; ``many`` where an s is not enough."""
    return f"{number} {one}" if number == 1 else f"{number} {many or one + 's'}"


def cores(number: float) -> str:
    """Return a number of cores in words: ``4 cores``, ``1.5 cores``, ``1 core``."""
    shown = f"{number:.2f}".rstrip("0").rstrip(".")
    return f"{shown} core" if shown == "1" else f"{shown} cores"
