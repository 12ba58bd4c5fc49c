"""Other arguments for ``DistributedDataParallel``."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

from hotlap.knobs.target import Target


def replace_argument(target: Target, name: str, value: Any) -> None:
    """Wrap each model with ``name`` set to ``value``, where this torch has the argument."""
    owner = sys.modules["torch"].nn.parallel.DistributedDataParallel
    own = owner.__init__
    signature = inspect.signature(own)
    if name not in signature.parameters:
        target.note(f"this torch's DistributedDataParallel has no argument {name}")
        return

    @functools.wraps(own)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        before = given.arguments.get(name, signature.parameters[name].default)
        if before != value:
            given.arguments[name] = value
            target.acted(f"DistributedDataParallel was made with {name}={value}, not {before}")
        own(*given.args, **given.kwargs)

    def refuse(made: Any) -> None:
        if isinstance(made, owner):
            target.note(f"{name} is given when a model is wrapped, and it was: wrap it afterwards")

    target.replace(owner, "__init__", __init__)
    target.adjust_with(refuse)
