"""Other arguments for the DataLoaders that a script makes, or hands over.

All loaders get them, since which of them will feed the training is not known when they are made.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from hotlap.knobs.target import Target
from hotlap.values.knob import Case
from hotlap.values.shares import training_loader

_OF_WORKERS: Final = ("prefetch_factor", "persistent_workers")
_PREFETCH: Final = 2
"""What DataLoader takes where a loader has workers and nothing is said."""


def replace_argument(target: Target, name: str) -> None:
    """Make each loader with ``name`` set to the target's value: num_workers, prefetch_factor …"""
    place = sys.modules["torch"].utils.data
    own = place.DataLoader.__init__
    signature = inspect.signature(own)

    @functools.wraps(own)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        before = given.arguments.get(name, signature.parameters[name].default)
        fits = _fits(target, name, given.arguments, place.IterableDataset)
        if fits and before != target.value:
            given.arguments[name] = target.value
            _agree(given.arguments)
            target.acted(f"a loader was made with {name}={target.value} in place of {before}")
        own(*given.args, **given.kwargs)

    def adjust(made: Any) -> None:
        if isinstance(made, place.DataLoader):
            _adjust(target, name, made, place.IterableDataset)

    target.replace(place.DataLoader, "__init__", __init__)
    target.adjust_with(adjust)
    target.note("loaders for evaluation were given it too")


def numerics_of(case: Case) -> str:
    """Return the class of a change of workers: what a data set draws depends on its worker."""
    draws = case.facts.defaults.get("dataset_draws")
    return "identical" if draws is not None and len(draws) == 0 else "resampled"


def workers_of(case: Case) -> int | None:
    """Return the workers of the training's loader, with what is on already; None of no loader."""
    loader = training_loader(case.facts)
    if loader is None:
        return None
    return int(case.applied.get("loader_workers", loader.workers))


def _fits(target: Target, name: str, given: dict[str, Any], streams: type) -> bool:
    workers = given.get("num_workers", 0)
    if name in _OF_WORKERS:
        if workers:
            return True
        target.note("a loader without workers was left as it was")
        return False
    is_stream = isinstance(given.get("dataset"), streams)
    if name == "num_workers" and is_stream and not workers and target.value:
        target.note("a stream was left as it was: workers that do not share it out give copies")
        return False
    return True


def _adjust(target: Target, name: str, loader: Any, streams: type) -> None:
    """Set an argument of a loader that was made already, unless it has begun with its workers."""
    kept = vars(loader)
    before = kept.get(name)
    if before == target.value or not _fits(target, name, kept, streams):
        return
    if kept.get("_iterator") is not None:
        target.note("a loader whose workers stay had started them: it was left as it was")
        return
    given = {key: kept.get(key) for key in ("num_workers", *_OF_WORKERS)} | {name: target.value}
    if not given["num_workers"]:
        given.update(prefetch_factor=None, persistent_workers=False, timeout=0)
    elif given["prefetch_factor"] is None:
        given["prefetch_factor"] = _PREFETCH
    changed = {key: (kept.get(key), value) for key, value in given.items()}
    # Not by setattr, which refuses some of them once a loader is made; none has begun yet.
    kept.update(given)
    target.undo_with(_restorer(loader, changed))
    target.acted(f"a loader was set to {name}={target.value} in place of {before}")


def _restorer(loader: Any, changed: dict[str, tuple[Any, Any]]) -> Callable[[], None]:
    held = weakref.ref(loader)

    def restore() -> None:
        made = held()
        for key, (before, after) in changed.items() if made is not None else ():
            if vars(made)[key] == after:
                vars(made)[key] = before

    return restore


def _agree(given: dict[str, Any]) -> None:
    """Take out what DataLoader refuses beside no workers."""
    if not given.get("num_workers", 0):
        for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
            given.pop(name, None)
