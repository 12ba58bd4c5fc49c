"""A trial without activation checkpointing: what it would recompute is kept instead.

``torch.utils.checkpoint.checkpoint`` looks up what does the work by name, so a script (or a
library) that holds a reference to ``checkpoint`` itself gets the change as well. Where a torch has
other names there, the change says so and does not act.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from hotlap.inject.conditions.change import Change


def activation_checkpointing(change: Change) -> None:
    """Keep activations where the script asks that they be computed again (value ``False``)."""
    if change.value:
        change.note("it can only be switched off")
        return
    module = importlib.import_module("torch.utils.checkpoint")
    words = "checkpointed calls ran once and kept their activations"

    class Plain:
        """In the place of the autograd function of the older kind (``use_reentrant=True``)."""

        @staticmethod
        def apply(function: Callable[..., Any], _preserve: bool, *args: Any) -> Any:
            change.acted(words)
            return function(*args)

    def plain(*_args: Any, **_kwargs: Any) -> Iterator[None]:
        change.acted(words)
        yield

    if not all(hasattr(module, name) for name in ("CheckpointFunction", _GENERATOR)):
        change.note("this torch does its checkpointing in another way")
        return
    change.replace(module, "CheckpointFunction", Plain)
    change.replace(module, _GENERATOR, plain)


_GENERATOR = "_checkpoint_without_reentrant_generator"
