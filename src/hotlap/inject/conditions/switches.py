"""How torch's switches stood during the steps, and what the optimizer's parameters are.

Looked at while the script trains, since a script may switch a thing on for the backward pass only.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import Any, Final

from hotlap.inject.conditions import contents
from hotlap.inject.conditions.log_handlers import most_repeated
from hotlap.sites.hub import Hub, nothing_began

_MOST: Final = 1 << 16
"""Parameters that are looked at."""
_MOST_PASSES: Final = 256
"""Backward passes that are waited through for an optimizer whose gradients have been cleared."""


class Switches:
    """Looks at backward passes and optimizers. Cost: below 1 us per pass; only in trials."""

    def __init__(self) -> None:
        self._backwards = self._anomalous = 0
        self._cleared = False
        self._passes = 0
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._groups: dict[str, Any] = {}

    def attach(self, hub: Hub) -> None:
        """Subscribe to the sites where they show."""
        hub.subscribe("backward", self._backward_begins)
        hub.subscribe("optimizer_step", nothing_began, self._stepped)
        hub.subscribe("zero_grad", nothing_began, self._has_cleared)

    def is_within_a_step(self) -> bool:
        """Tell whether a backward pass without a loader is one of several before the first step of
        an optimizer. It is known by having been made, or by having cleared gradients. To be asked
        once a pass."""
        self._passes += 1
        if self._optimizers or self._passes > _MOST_PASSES:
            return False
        return self._cleared or _an_optimizer_was_made()

    def _has_cleared(self, _token: Any, _optimizer: Any) -> None:
        self._cleared = True

    def _backward_begins(self, _subject: Any) -> int:
        self._backwards += 1
        self._anomalous += sys.modules["torch"].is_anomaly_enabled()
        return 0

    def _stepped(self, _token: Any, optimizer: Any) -> None:
        if id(optimizer) not in self._optimizers and len(self._optimizers) < 16:
            self._optimizers[id(optimizer)] = weakref.ref(optimizer)

    def facts(self, models: Sequence[Any] = ()) -> dict[str, Any]:
        """Return what is known by now, by the names that ``values.facts.Facts.defaults`` has.

        models: the modules that are trained.
        """
        torch = sys.modules["torch"]
        known = (reference() for reference in self._optimizers.values())
        optimizers = [one for one in known if one is not None]
        groups = [group for one in optimizers for group in one.param_groups]
        if groups:  # at the end of the process they are gone: what was seen before stays
            parameters = [one for group in groups for one in group["params"]][:_MOST]
            self._groups = {
                "parameters": len(parameters),
                "parameter_dtypes": sorted({_name(one.dtype) for one in parameters}),
                "foreach": _common(groups, "foreach"),
                "fused": _common(groups, "fused"),
                **contents.parameters(models, optimizers),
            }
        return {
            # torch.compile has it on while it captures a backward pass: not for half of them.
            "anomaly": self._anomalous * 2 > self._backwards,
            "threads": torch.get_num_threads(),
            "default_dtype": _name(torch.get_default_dtype()),
            "matmul_precision": torch.get_float32_matmul_precision(),
            "log_handlers": most_repeated(),
            **self._groups,
        }


def _an_optimizer_was_made() -> bool:
    """Tell whether an object of a class of optimizers was made: torch marks its ``step`` then."""
    waiting, seen = [sys.modules["torch"].optim.Optimizer], set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if getattr(vars(one).get("step"), "hooked", None):
            return True
        waiting += one.__subclasses__()
    return False


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _common(groups: list[dict[str, Any]], name: str) -> bool | None:
    """Return what all groups have set; None where they differ, or leave it to torch."""
    found = {group.get(name) for group in groups}
    value = found.pop() if len(found) == 1 else None
    return value if isinstance(value, bool) else None
