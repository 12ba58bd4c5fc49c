"""torch.profiler's tree of events, by the user's line: which operators each line called.

The tree has a node for each Python call, C call and operator. An operator belongs to the innermost
frame of the user's above it; the line is the one from which that frame called what lies between
them. Where nothing lies between (``a @ b`` makes no call that Python tells of), the source is asked
for the line (``operator_lines``). Where it does not say, the line lies between those of the calls
before and after: ``until`` is then the second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from hotlap.inject.conditions.operator_lines import OperatorLines

MOST: Final = 200
"""Rows that are kept by time, and as many by calls."""
_SHAPES: Final = 256
_PYTHON: Final = frozenset(("PyCall", "PyCCall"))
_TIMED: Final = frozenset(("PyCall", "PyCCall", "TorchOp", "Backend"))
_BACKWARD: Final = ("autograd::engine", "torch::autograd::")
_ENTERS: Final = {
    ("graph.py", "_engine_run_backward"): (os.path.join("torch", "autograd"), "backward"),
    ("dataloader.py", "__next__"): (os.path.join("torch", "utils", "data"), "data_wait"),
    ("optimizer.py", "wrapper"): (os.path.join("torch", "optim"), "optimizer"),
    ("optimizer.py", "zero_grad"): (os.path.join("torch", "optim"), "optimizer"),
}
"""Functions of torch, by the name of their file, to the file's folder and the phase inside."""
_MODULE: Final = "nn.Module: "

Spot = tuple[str, int, str]
"""File as reports show it, line, function."""


class Where(NamedTuple):
    """What is known of a node from those above it.

    frame: the innermost user's frame, with the line that is open there. until: the last line that
    it may be; None where it is known.
    """

    frame: Spot | None
    until: int | None
    phase: str


@dataclass
class Row:
    """Calls of one operator from one line. forward: of a backward operator, the line of the
    forward pass that it belongs to."""

    where: Where
    name: str
    forward: Spot | None
    calls: int = 0
    ns: int = 0
    shapes: set[tuple[Any, ...]] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)

    def to_dict(self, steps: int) -> dict[str, Any]:
        """Return the JSON form, per step."""
        return {
            "place": self.where.frame,
            "until": self.where.until,
            "phase": self.where.phase,
            "name": self.name[:120],
            "forward": self.forward,
            "calls": self.calls / steps,
            "ns": self.ns / steps,
            "shapes": len(self.shapes) or None,
            "dtypes": sorted(self.dtypes),
        }


class Names:
    """Turns the file names of events, whose beginnings torch cuts off, into those of the user's.

    is_users, shown: of ``probe.places.Places``.
    """

    def __init__(self, is_users: Callable[[str], bool], shown: Callable[[str], str]) -> None:
        self._is_users = is_users
        self._shown = shown
        self._known: dict[str, str | None] = {}
        self._paths: dict[str, str] = {}
        files = (getattr(one, "__file__", None) for one in list(sys.modules.values()))
        self._loaded = {one for one in files if isinstance(one, str)}

    def users(self, name: str) -> str | None:
        """Return the name to show of a file of the user's; None for any other file."""
        if name not in self._known:
            full = self._full(name)
            self._paths[name] = full or name
            mine = full is not None and self._is_users(full)
            self._known[name] = self._shown(full) if mine and full is not None else None
        return self._known[name]

    def path(self, name: str) -> str:
        """Return where a file lies of which ``users`` was asked."""
        return self._paths[name]

    def _full(self, name: str) -> str | None:
        if os.path.isabs(name) or name.startswith("<"):
            return name
        folders = [os.path.abspath(one) for one in sys.path]
        found = [os.path.join(one, name) for one in folders]
        for path in found:
            if path in self._loaded:
                return path
        return next((path for path in found if os.path.isfile(path)), None)


class Walk:
    """Adds up the operators of a forest of events."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._source = OperatorLines()
        self._rows: dict[tuple[Any, ...], Row] = {}
        self._forward: dict[int, Spot] = {}
        self._backward: list[tuple[int, int, Where]] = []
        self._waiting: list[tuple[Any, Where, int]] = []

    def take(self, roots: Iterable[Any]) -> None:
        """Go through all events; backward operators of other threads come last."""
        late = []
        for root in roots:
            if _tag(root) == "TorchOp" and _is_backward(root):
                late.append(root)
            else:
                self._descend(root, Where(None, None, "other"))
        for root in late:
            self._descend(root, self._at_backward(root.start_time_ns))
        for event, where, sequence in self._waiting:
            self._add(event, where, self._forward.get(sequence))
        self._waiting.clear()

    def _at_backward(self, at_ns: int) -> Where:
        """Return where the backward pass was called that ran at an instant."""
        for begin, end, where in self._backward:
            if begin <= at_ns <= end:
                return where
        return Where(None, None, "backward")

    def _descend(self, root: Any, where: Where) -> None:
        stack: list[tuple[Any, Where, int]] = [(root, where, -1)]
        while stack:
            event, above, sequence = stack.pop()
            tag = _tag(event)
            here = self._entered(event, tag, above)
            if tag == "TorchOp":
                sequence = self._operator(event, here, sequence)
            children = event.children
            places = self._lines(event, tag, here, children)
            below = [
                (child, place, sequence) for child, place in zip(children, places, strict=True)
            ]
            stack.extend(reversed(below))

    def _entered(self, event: Any, tag: str, above: Where) -> Where:
        """Return what is known inside of an event."""
        if tag != "PyCall":
            return above
        called = _called(event)
        if called is None:
            return above
        file, line, function = called
        phase = above.phase
        folder, name = os.path.split(file)
        means = _ENTERS.get((name, function))
        if means is not None and folder.endswith(means[0]):
            if means[1] == "backward":
                inside = above._replace(phase="backward")
                self._backward.append((event.start_time_ns, event.end_time_ns, inside))
                return inside
            phase = means[1] if phase == "other" else phase
        elif phase == "other" and _name(event).startswith(_MODULE):
            phase = "forward"
        shown = self._names.users(file)
        if shown is not None:
            return Where((shown, line, function), None, phase)
        return above if phase == above.phase else above._replace(phase=phase)

    def _lines(self, event: Any, tag: str, here: Where, children: Sequence[Any]) -> Iterable[Where]:
        """Return for each child what is known above it: the line from which it was called."""
        called = _called(event) if tag == "PyCall" else None
        if called is None or here.frame is None or self._names.users(called[0]) is None:
            return [here] * len(children)
        file, first, function = here.frame
        path = self._names.path(called[0])
        course = self._source.course(path, first, function)
        lines: list[int | None] = [
            child.extra_fields.caller.line_number if _tag(child) in _PYTHON else None
            for child in children
        ]
        found, before = [], first
        for child, line, following in zip(children, lines, _following(lines), strict=True):
            until = None
            if line is not None:
                before = line
                course.called(line)
            elif _tag(child) == "TorchOp":
                stands = course.line(_name(child), following)
                if stands is None:
                    until = max(before, following or before)
                else:
                    before = stands
            found.append(Where((file, before, function), until, here.phase))
        return found

    def _operator(self, event: Any, here: Where, sequence: int) -> int:
        """Add an operator; return the sequence number that those inside of it belong to."""
        extra = event.extra_fields
        if "USER_SCOPE" in str(extra.scope):
            return sequence  # a range that a library or the script named: no operator
        if here.phase == "backward":
            if _is_backward(event) and extra.sequence_number >= 0:
                sequence = extra.sequence_number
            self._waiting.append((event, here, sequence))
            return sequence
        if extra.sequence_number >= 0 and here.frame is not None:
            # The last one with a number is the one that recorded the step of the backward pass.
            self._forward[extra.sequence_number] = here.frame
        self._add(event, here, None)
        return sequence

    def _add(self, event: Any, where: Where, forward: Spot | None) -> None:
        name = _name(event)
        key = (where, name, forward)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(where, name, forward)
        inside = sum(one.duration_time_ns for one in event.children if _tag(one) in _TIMED)
        row.calls += 1
        row.ns += max(0, event.duration_time_ns - inside)
        shapes, dtypes = _inputs(event.extra_fields.inputs)
        if len(row.shapes) < _SHAPES:
            row.shapes.add(shapes)
        row.dtypes |= dtypes

    def rows(self, steps: int) -> list[dict[str, Any]]:
        """Return the dearest rows and those with the most calls, per step."""
        rows = list(self._rows.values())
        by_time = sorted(rows, key=lambda one: -one.ns)[:MOST]
        by_calls = sorted(rows, key=lambda one: -one.calls)[:MOST]
        kept = {id(one): one for one in (*by_time, *by_calls)}
        return [one.to_dict(max(1, steps)) for one in kept.values()]


def _following(lines: Sequence[int | None]) -> list[int | None]:
    """Return for each place of a list the next number after it, None where there is none."""
    found: list[int | None] = []
    following = None
    for line in reversed(lines):
        found.append(following)
        following = line if line is not None else following
    return found[::-1]


def _inputs(inputs: Sequence[Any]) -> tuple[tuple[Any, ...], set[str]]:
    """Return the shapes of an operator's input tensors, and their types.

    A number that became a tensor for the call has no dimensions: its type says nothing.
    """
    tensors = [
        one
        for given in inputs
        for one in (given if isinstance(given, (list, tuple)) else (given,))
        if getattr(one, "dtype", None) is not None
    ]
    shapes = tuple(tuple(one.sizes) for one in tensors)
    telling = [one for one in tensors if len(one.sizes)] or tensors
    return shapes, {str(one.dtype).removeprefix("torch.") for one in telling}


def _tag(event: Any) -> str:
    return str(event.tag).rpartition(".")[2]


def _called(event: Any) -> Spot | None:
    """Return file, line and name of a function that was called.

    None where torch's copy of the names is gone: those of code that was made and freed meanwhile.
    """
    try:
        site = event.extra_fields.callsite
        return str(site.file_name), int(site.line_number), str(site.function_name)
    except UnicodeDecodeError:
        return None


def _name(event: Any) -> str:
    try:
        return str(event.name)
    except UnicodeDecodeError:
        return ""


def _is_backward(event: Any) -> bool:
    return _name(event).startswith(_BACKWARD) or "BACKWARD" in str(event.extra_fields.scope)
