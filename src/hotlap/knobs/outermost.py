"""Outermost calls of modules, for knobs that act on a whole forward pass."""

from __future__ import annotations

import copy
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

from hotlap.knobs.target import Target

Handle = Callable[[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


def replace_outermost(target: Target, handle: Handle) -> None:
    """Let ``handle(module, own, args, kwargs)`` make each outermost call in the place of ``own``.

    ``own(module, *args, **kwargs)`` is the call as it was. Loss functions and modules without
    parameters, and what is traced by a compiler, are left alone. Cost: under 1 us per submodule.
    """
    torch = sys.modules["torch"]
    own = torch.nn.Module.__call__
    is_compiling = getattr(torch.compiler, "is_dynamo_compiling", torch.compiler.is_compiling)
    depth = threading.local()

    @functools.wraps(own)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or getattr(depth, "inside", False):
            return own(self, *args, **kwargs)
        depth.inside = True
        try:
            if not _is_model(self):
                return own(self, *args, **kwargs)
            return handle(self, own, args, kwargs)
        finally:
            depth.inside = False

    target.replace(torch.nn.Module, "__call__", call)


def trains(module: Any) -> bool:
    """Tell whether a module is called to be trained."""
    return bool(module.training) and bool(sys.modules["torch"].is_grad_enabled())


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Return arguments or results with each tensor changed; what holds none stays the same object.

    Tuples, lists and dicts are looked into, and copied where something in them changes.
    """
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) is list or isinstance(value, tuple):
        parts = [mapped(change, one) for one in value]
        if all(new is one for new, one in zip(parts, value, strict=True)):
            return value
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return type(value)(parts)
    if isinstance(value, dict):
        new = {key: mapped(change, one) for key, one in value.items()}
        changed = {key: one for key, one in new.items() if one is not value[key]}
        return value if not changed else _with(value, changed)
    return value


def _with(value: dict[Any, Any], changed: dict[Any, Any]) -> Any:
    if type(value) is dict:
        return {**value, **changed}
    clone = copy.copy(value)
    for key, one in changed.items():
        clone[key] = one
    return clone


def _is_model(module: Any) -> bool:
    if "torch.nn.modules.loss" in type(module).__module__:
        return False
    return next(module.parameters(), None) is not None
