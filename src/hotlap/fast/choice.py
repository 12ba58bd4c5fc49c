"""Which hooks this process uses: compiled ones where they fit it, else those in Python."""

from __future__ import annotations

import importlib
from time import perf_counter_ns
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from hotlap.fast import reference, switch
from hotlap.values.phase import ACCOUNTS, RULES

INTERFACE: Final = 3
"""Of the compiled module; a higher one whenever what it offers or expects changes."""


def _load() -> tuple[ModuleType | None, str | None]:
    """Return the compiled module and None, or None and why it is not used."""
    if switch.off:
        return None, "switched off"
    try:
        found = importlib.import_module("hotlap.fast._hooks")
    except ModuleNotFoundError:
        return None, "not built for this Python"
    except Exception as error:
        return None, f"cannot be loaded: {str(error)[:200]}"
    same = getattr(found, "INTERFACE", 0) == INTERFACE and len(ACCOUNTS) == found.WIDTH
    same = same and all(
        number == names.index(name)
        for names, numbers in ((ACCOUNTS, found.ACCOUNTS), (RULES, found.RULES))
        for name, number in numbers.items()
    )
    if not same:
        return None, "built from another version of hotlap"
    if not perf_counter_ns() <= found.read_clock() <= perf_counter_ns():
        return None, "its clock is not Python's"
    return found, None


hooks, because = _load()

if TYPE_CHECKING:
    from hotlap.fast.reference import Depth, Feed, Ledger, Sample, Standing, Tally, Ticks, stacks
else:
    _source: Final[Any] = hooks or reference
    Depth = _source.Depth
    Feed = _source.Feed
    Ledger = _source.Ledger
    Sample = _source.Sample
    Standing = _source.Standing
    Tally = _source.Tally
    Ticks = _source.Ticks
    stacks = _source.stacks

__all__ = [
    "Depth",
    "Feed",
    "Ledger",
    "Sample",
    "Standing",
    "Tally",
    "Ticks",
    "because",
    "hooks",
    "stacks",
]
