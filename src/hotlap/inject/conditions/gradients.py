"""Gradients that some backward passes compute and that no optimizer ever uses.

A backward pass goes from the loss to where its graph begins. When the gradients that are done last
belong to parameters that are cleared before their optimizer steps, the pass could have ended where
the last used one was done: what comes after that instant is time for nothing. So it is with the
generator of a GAN in the discriminator's pass, or with a target network that should have been
under ``no_grad``. Gradients that are thrown away on the way to used ones are no such case.

Looked at over some passes only, by hooks on the parameters, which see and change nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Final

from hotlap.probe.places import Places
from hotlap.sites.hub import Hub, nothing_began

_PASSES: Final = 16
"""Passes that are looked at: several cycles of several optimizers."""
_MOST: Final = 1 << 13
"""Parameters that are looked at; models with more are left alone."""


@dataclass
class _Pass:
    """One backward pass. done: instant of each parameter's gradient, by its id."""

    place: tuple[str, int, str] | None
    begin_ns: int
    end_ns: int = 0
    done: dict[int, int] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)
    used_ns: int = 0
    cleared_ns: int = 0

    def wasted_ns(self) -> int:
        """Return the time from the last gradient that was used to the last that was cleared unused.

        0 where none came after it: what follows then (ranks that wait for each other) is no
        gradient's. And 0 where none was used: a pass of which no optimizer's step uses anything was
        made for something else: the script reads the gradients itself (a sharpness-aware or a
        projected step), or a closure does.
        """
        return max(0, self.cleared_ns - self.used_ns) if self.used_ns else 0

    def settle(self, keys: set[int], are_used: bool) -> None:
        """What these parameters' gradients were for is known now."""
        here = self.unknown & keys
        self.unknown -= here
        last = max((self.done[key] for key in here), default=0)
        if are_used:
            self.used_ns = max(self.used_ns, last)
        else:
            self.cleared_ns = max(self.cleared_ns, last)


class Gradients:
    """Looks at ``_PASSES`` backward passes once models are known. Cost: 2 us a parameter in each.

    mine: tells whether the calling thread is the one that trains. models: returns those that are
    trained.
    """

    def __init__(
        self, places: Places, mine: Callable[[], bool], models: Callable[[], Iterable[Any]]
    ) -> None:
        self._places = places
        self._mine = mine
        self._models = models
        self._passes: list[_Pass] = []
        self._open: _Pass | None = None
        self._handles: list[Any] = []
        self._is_over = False

    def attach(self, hub: Hub) -> None:
        """Subscribe to backward passes and optimizers."""
        hub.subscribe("backward", self._begins, self._ended)
        hub.subscribe("optimizer_step", nothing_began, self._stepped)
        hub.subscribe("zero_grad", self._clears)

    def stepped(self, steps: int) -> None:
        """A step has ended. steps: so many; models and optimizers are known from the second on."""
        if steps == 2 and not self._is_over:
            self._watch()

    def facts(self) -> dict[str, Any]:
        """Return ``{"discarded": [file, line, function, backward ns, of them for nothing]}``.

        Of the line whose passes waste most, and ``discarded_share`` of all that were looked at;
        empty where none could be.
        """
        judged = [one for one in self._passes if one.done and not one.unknown]
        whole = sum(one.end_ns - one.begin_ns for one in judged)
        if not whole:
            return {}
        by_place: dict[tuple[str, int, str] | None, list[int]] = {}
        for one in judged:
            row = by_place.setdefault(one.place, [0, 0])
            row[0] += one.end_ns - one.begin_ns
            row[1] += one.wasted_ns()
        place, (spent, wasted) = max(by_place.items(), key=lambda item: item[1][1])
        return {
            "discarded_share": sum(one.wasted_ns() for one in judged) / whole,
            "discarded": [*place, spent, wasted] if place is not None else None,
        }

    def _watch(self) -> None:
        if something_is_compiled():
            self._is_over = True  # hooks that were not there would have it traced anew
            return
        found = {id(one): one for model in self._models() for one in model.parameters()}
        wanted = [one for one in found.values() if one.requires_grad and one.is_leaf]
        if not wanted or len(wanted) > _MOST or any(one.device.type != "cpu" for one in wanted):
            self._is_over = True  # a device works after its calls have returned
            return
        for one in wanted:
            hook = getattr(one, "register_post_accumulate_grad_hook", None)
            if hook is not None:
                self._handles.append(hook(self._is_done))

    def _is_done(self, parameter: Any) -> None:
        if self._open is not None:
            self._open.done[id(parameter)] = perf_counter_ns()

    def _begins(self, _subject: Any) -> int:
        if not self._handles or self._open is not None or not self._mine():
            return 0
        self._settle_cleared()
        if len(self._passes) >= _PASSES:
            self.finish()
            return 0
        frame = self._places.find(sys._getframe(1))
        at = self._places.to_dict(frame)
        place = None if at is None else (at["file"], at["line"], at["function"])
        self._open = _Pass(place, perf_counter_ns())
        return 1

    def _ended(self, _token: Any, _subject: Any) -> None:
        now, ended, self._open = perf_counter_ns(), self._open, None
        if ended is not None:
            ended.end_ns = now
            ended.unknown = set(ended.done)
            self._passes.append(ended)

    def _stepped(self, _token: Any, optimizer: Any) -> None:
        self._resolve(optimizer, are_used=True)

    def _clears(self, optimizer: Any) -> int:
        self._resolve(optimizer, are_used=False)
        return 0

    def _resolve(self, optimizer: Any, are_used: bool) -> None:
        """What these parameters' gradients were for is known now."""
        waiting = [one for one in self._passes if one.unknown] if self._handles else []
        if not waiting or not self._mine():
            return
        mine = {id(one) for group in optimizer.param_groups for one in group["params"]}
        for one in waiting:
            one.settle(mine, are_used)

    def _settle_cleared(self) -> None:
        """Gradients that are gone without a step were cleared by the model, or by hand."""
        waiting = [one for one in self._passes if one.unknown]
        if not waiting:
            return
        found = {id(one): one for model in self._models() for one in model.parameters()}
        cleared = {key for key, one in found.items() if one.grad is None}
        for one in waiting:
            one.settle(cleared, are_used=False)

    def finish(self) -> None:
        """Take the hooks off the parameters, for good. May be called twice."""
        self._is_over = True
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def something_is_compiled() -> bool:
    """Tell whether Dynamo has captured a frame in this process."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    return bool(counters and counters["frames"])
