"""What a batch is made of: its size, its shape, its tensors, and copies of it.

A batch may be anything: a tensor, nested tuples, lists and dictionaries, an object of a library
or of the script's own. What cannot be looked into is passed on as it is.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

_DEPTH: Final = 6
_WIDTH: Final = 4096
"""Items of one container that are looked at."""


def is_tensor(value: Any) -> bool:
    """Tell whether it is a tensor of torch."""
    return isinstance(value, sys.modules["torch"].Tensor)


def parts(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield what is not a container, in order; containers deeper than six are passed over."""
    if depth > _DEPTH:
        return
    inner = _inner(value)
    if inner is None:
        yield value
        return
    for one in inner[:_WIDTH]:
        yield from parts(one, depth + 1)


def _inner(value: Any) -> list[Any] | None:
    """Return what a container holds; None for what is none."""
    if is_tensor(value) or isinstance(value, (str, bytes, int, float)) or value is None:
        return None
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict) and not callable(value) and not hasattr(value, "shape"):
        return list(held.values())
    return None


def tensors(batch: Any) -> list[Any]:
    """Return the tensors of a batch."""
    return [one for one in parts(batch) if is_tensor(one)]


def signature(batch: Any) -> tuple[Any, ...]:
    """Return shapes and types of what has them: equal for batches that cost the same work."""
    return tuple(
        (tuple(one.shape), str(getattr(one, "dtype", "")))
        for one in parts(batch)
        if hasattr(one, "shape")
    )


def size_bytes(batch: Any) -> int:
    """Return the bytes of its tensors and arrays, by their shape."""
    total = 0
    for one in parts(batch):
        if is_tensor(one):
            total += one.numel() * one.element_size()
        else:
            size = getattr(one, "nbytes", None)
            total += size if isinstance(size, int) else 0
    return total


def samples(batch: Any, expected: int | None = None) -> int | None:
    """Return how many samples a batch holds; None when it cannot be told.

    expected: the loader's batch size, if it has one: counts where it is a length that is seen.
    Otherwise the first length that is met counts: of the first dimension of a tensor or array, or
    of a list of other things.
    """
    graphs = getattr(batch, "num_graphs", None)
    if isinstance(graphs, int):
        return graphs
    seen = list(_lengths(batch, 0))
    if expected is not None and expected in seen:
        return expected
    return seen[0] if seen else None


def _lengths(value: Any, depth: int) -> Iterator[int]:
    shape = getattr(value, "shape", None)
    if shape is not None:
        if len(shape):
            yield int(shape[0])
        return
    inner = _inner(value)
    if inner is None or depth > _DEPTH:
        return
    found = False
    for one in inner[:64]:
        for length in _lengths(one, depth + 1):
            found = True
            yield length
    # [images, labels] are two parts of a batch, [image, image, image] three samples: where tensors
    # are inside, their own lengths come first.
    if isinstance(value, list) or (isinstance(value, tuple) and not found):
        yield len(value)


def copied(value: Any, tensor: Callable[[Any], Any], depth: int = 0) -> Any:
    """Return the same batch in containers of its own, each tensor replaced by ``tensor`` of it.

    So a script that takes entries out of a batch, or puts others in, leaves the copy as it was.
    """
    if is_tensor(value):
        return tensor(value)
    if depth > _DEPTH or isinstance(value, (str, bytes, int, float)) or value is None:
        return value
    if isinstance(value, tuple):
        inner = [copied(one, tensor, depth + 1) for one in value]
        make = getattr(value, "_make", None)
        if make is not None:
            return make(inner)
        return tuple(inner) if type(value) is tuple else value
    if type(value) is list:
        return [copied(one, tensor, depth + 1) for one in value]
    if isinstance(value, (dict, Mapping)):
        return _copied_mapping(value, tensor, depth)
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict) or callable(value) or hasattr(value, "shape"):
        return value
    made = copy.copy(value)
    if not hasattr(type(value), "__copy__"):
        for name, one in held.items():
            made.__dict__[name] = copied(one, tensor, depth + 1)
    return made


def _copied_mapping(value: Any, tensor: Callable[[Any], Any], depth: int) -> Any:
    if not hasattr(value, "__setitem__"):
        return value  # nobody takes anything out of it either
    made = copy.copy(value)
    for name, one in value.items():
        made[name] = copied(one, tensor, depth + 1)
    return made


def versions(batch: Any) -> tuple[Any, ...]:
    """Return what changes when a tensor of the batch is changed in place."""
    return tuple((_version(one), one.requires_grad) for one in tensors(batch))


def _version(tensor: Any) -> int | None:
    try:
        return int(tensor._version)
    except RuntimeError:
        return None  # tensors made in inference mode keep no count


def clone(tensor: Any) -> Any:
    """Return a tensor of its own storage, pinned if the other is."""
    made = tensor.detach().clone()
    if made.device.type == "cpu" and sys.modules["torch"].cuda.is_initialized():
        made = made.pin_memory() if tensor.is_pinned() else made
    return made
