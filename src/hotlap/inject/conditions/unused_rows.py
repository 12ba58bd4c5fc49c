"""Rows that a layer computes and that nothing trained depends on: their gradient is exactly zero.

A row of a linear layer's output depends on that row of its input alone, a sample of a convolution's
output on that sample alone. Where a whole row of the gradient that comes back is zero, forward and
backward pass of that row were made for nothing: so it is with all positions that the loss leaves
out, and with experts whose answers are multiplied by zero.

Looked at over two steps only, by hooks, which see and change nothing else.
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

import hotlap
from hotlap.inject.conditions.gradients import something_is_compiled
from hotlap.probe.places import Places

_FIRST: Final = 2
_STEPS: Final = 2
_MOST: Final = 1 << 12
"""Layers that are looked at; models with more are left alone."""
_LAYERS: Final = os.path.join("torch", "nn", "modules")
_OWN: Final = os.path.dirname(os.path.abspath(hotlap.__file__))
_THROUGH: Final = frozenset(("module.py", "container.py", "linear.py", "conv.py"))
_KEPT: Final = 4
"""Lines that are told of."""

Key = tuple[str, int, str]


@dataclass
class _Line:
    """What was computed at one line. work: multiplications; unused: tensors of one number each."""

    dims: int = 0
    work: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    unused: list[Any] = field(default_factory=list)

    def lost(self) -> float:
        """Return the work for nothing."""
        found = zip(self.work, self.unused, self.rows, strict=True)
        return sum(work * int(unused) / rows for work, unused, rows in found)

    def row(self, key: Key) -> list[Any]:
        """Return ``[file, line, function, rows, of them unused, share of the work, dims]``."""
        unused = sum(int(one) for one in self.unused)
        return [*key, sum(self.rows), unused, self.lost() / sum(self.work), self.dims]


class UnusedRows:
    """Looks at the gradients of two steps. Cost in those: reading each gradient once more.

    models: returns those that are trained. mine: tells whether the calling thread trains.
    """

    def __init__(
        self, places: Places, mine: Callable[[], bool], models: Callable[[], Iterable[Any]]
    ) -> None:
        self._places = places
        self._mine = mine
        self._models = models
        self._handles: list[Any] = []
        self._layers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lines: dict[Key, _Line] = {}
        self._told: list[list[Any]] = []

    def stepped(self, steps: int) -> None:
        """A step has ended. steps: so many; models are known from the second on."""
        if steps == _FIRST:
            self._watch()
        elif steps == _FIRST + _STEPS:
            self.finish()

    def facts(self) -> dict[str, Any]:
        """Return ``{"unused_rows": rows of _Line.row}``, most work for nothing first.

        Empty where nothing was looked at or no row was unused.
        """
        return {"unused_rows": self._told} if self._told else {}

    def finish(self) -> None:
        """Take the hooks off the layers, for good, and count. May be called twice."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        ranked = sorted(self._lines.items(), key=lambda item: -item[1].lost())[:_KEPT]
        found = [line.row(key) for key, line in ranked]
        self._lines.clear()
        self._told = [one for one in found if one[4]] or self._told

    def _watch(self) -> None:
        if something_is_compiled():
            return  # hooks that were not there would have it traced anew
        torch = sys.modules["torch"]
        kinds = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)
        layers = [
            one for model in self._models() for one in model.modules() if isinstance(one, kinds)
        ]
        if len(layers) <= _MOST:
            # Not hooks of the layers' own: these are copied and pickled with the model.
            self._layers = weakref.WeakSet(layers)
            self._handles = [torch.nn.modules.module.register_module_forward_hook(self._computed)]

    def _computed(self, layer: Any, _args: Any, output: Any) -> None:
        torch = sys.modules["torch"]
        if layer not in self._layers or not isinstance(output, torch.Tensor):
            return
        if not output.requires_grad or not self._mine():
            return
        if not output.numel() or output.dim() < 2:
            return
        frame = sys._getframe(1)
        at = self._places.to_dict(self._places.find(frame))
        if at is None or not self._is_called_here(frame):
            return
        key = (at["file"], at["line"], at["function"])
        # Of every row as many as its length, for every output as many as a weight of it has.
        work = float(output.numel()) * float(layer.weight[0].numel())
        is_linear = isinstance(layer, torch.nn.Linear)
        hook = functools.partial(self._came, key, work, is_linear)
        vars(hook)["__torch_unserializable__"] = True  # no warning where the script saves it
        output.register_hook(hook)

    def _is_called_here(self, frame: FrameType | None) -> bool:
        """Tell whether the user's code calls the layer, and no other library's: it can then select.

        A list of layers is called through torch's containers.
        """
        while frame is not None and not self._places.is_users(frame.f_code.co_filename):
            folder, name = os.path.split(frame.f_code.co_filename)
            is_torchs = folder.endswith(_LAYERS) and name in _THROUGH
            if not is_torchs and not folder.startswith(_OWN):
                return False
            frame = frame.f_back
        return frame is not None

    def _came(self, key: Key, work: float, is_linear: bool, gradient: Any) -> None:
        if not self._handles or gradient.is_sparse:
            return
        torch = sys.modules["torch"]
        with torch.no_grad():
            if is_linear:
                rows = gradient.reshape(-1, gradient.shape[-1])
            else:
                rows = gradient.reshape(gradient.shape[0], -1)
            line = self._lines.setdefault(key, _Line())
            line.unused.append((torch.count_nonzero(rows, dim=1) == 0).sum())
        line.dims = max(line.dims, gradient.dim() if is_linear else 2)
        line.work.append(work)
        line.rows.append(rows.shape[0])
