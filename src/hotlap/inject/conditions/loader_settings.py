"""Other arguments for the DataLoaders that a script makes.

All loaders get them, since which of them will feed the training is not known when they are made.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Final

from hotlap.inject.conditions.change import Change

_NAMES: Final = {"workers": "num_workers"}


def argument(change: Change) -> None:
    """Replace one argument of ``DataLoader``: workers, prefetch_factor or persistent_workers."""
    place = sys.modules["torch"].utils.data
    own = place.DataLoader.__init__
    signature = inspect.signature(own)
    name = _NAMES.get(change.name, change.name)

    @functools.wraps(own)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        before = given.arguments.get(name, signature.parameters[name].default)
        if _fits(change, given.arguments, place.IterableDataset) and before != change.value:
            given.arguments[name] = change.value
            _agree(given.arguments)
            change.acted(f"a loader was made with {name}={change.value} in place of {before}")
        own(*given.args, **given.kwargs)

    change.replace(place.DataLoader, "__init__", __init__)
    change.note("loaders for evaluation were given it too")


def _fits(change: Change, given: dict[str, Any], streams: type) -> bool:
    workers = given.get("num_workers", 0)
    if change.name != "workers":
        if workers:
            return True
        change.note("a loader without workers was left as it was")
        return False
    if isinstance(given.get("dataset"), streams) and not workers and change.value:
        change.note("a stream was left as it was: workers that do not share it out give copies")
        return False
    return True


def _agree(given: dict[str, Any]) -> None:
    """Take out what DataLoader refuses beside no workers."""
    if not given.get("num_workers", 0):
        for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
            given.pop(name, None)
