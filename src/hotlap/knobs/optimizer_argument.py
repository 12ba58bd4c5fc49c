"""Another argument for the optimizers that a script makes, where their class takes it."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from hotlap.knobs.target import Target


def replace_argument(target: Target, name: str, other: str) -> None:
    """Make each optimizer with ``name`` set to the target's value, and without ``other``.

    One that refuses it (sparse gradients, a device) is made as the script wants it, and the target
    notes why.
    """
    optim = sys.modules["torch"].optim
    found = [one for one in vars(optim).values() if inspect.isclass(one)]
    for owner in dict.fromkeys(found):
        own = vars(owner).get("__init__")
        if own is None or owner is optim.Optimizer:
            continue
        signature = inspect.signature(own)
        if name in signature.parameters:
            wrapped = _with_argument(target, own, signature, (name, other))
            target.replace(owner, "__init__", wrapped)


def _with_argument(
    target: Target, own: Callable[..., None], signature: inspect.Signature, names: tuple[str, str]
) -> Callable[..., None]:
    name, other = names

    @functools.wraps(own)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        params = given.arguments.get("params")
        if params is not None and not isinstance(params, (list, tuple, dict)):
            params = given.arguments["params"] = list(params)  # it may be needed twice
        before = {key: given.arguments.get(key) for key in names}
        given.arguments[name] = target.value
        if target.value and other in signature.parameters:
            given.arguments[other] = None
        try:
            own(*given.args, **given.kwargs)
        except (RuntimeError, ValueError) as error:
            target.note(f"{type(self).__name__} refused it: {' '.join(str(error).split())[:200]}")
            for key, value in before.items():
                if key in signature.parameters:
                    given.arguments[key] = value
            own(*given.args, **given.kwargs)
            return
        if bool(before[name]) != bool(target.value):
            target.acted(f"{type(self).__name__} was made with {name}={target.value}")

    return __init__
