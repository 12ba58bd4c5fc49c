"""A plan as a change of the user's own source: a unified diff, as far as one can be written.

Arguments of calls are edited where the calls stand, switches are put below the imports. What cannot
be written so (a layout of weights, an allocator) is told in words above the diff, which ``patch``
and ``git apply`` pass over.
"""

from __future__ import annotations

import ast
import difflib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hotlap.values.plan import Choice, Plan

_OPTIMIZERS: Final = frozenset("Adadelta Adagrad Adam AdamW Adamax NAdam RAdam RMSprop SGD".split())
_FUSED: Final = frozenset("Adagrad Adam AdamW SGD".split())
_LOADERS: Final = frozenset(("DataLoader",))
_PARALLEL: Final = frozenset(("DistributedDataParallel", "DDP"))

ARGUMENTS: Final[Mapping[str, tuple[frozenset[str], str, int | None]]] = {
    "loader_workers": (_LOADERS, "num_workers", 5),
    "persistent_workers": (_LOADERS, "persistent_workers", None),
    "prefetch_depth": (_LOADERS, "prefetch_factor", None),
    "pinned_memory": (_LOADERS, "pin_memory", 7),
    "fused_optimizer": (_FUSED, "fused", None),
    "foreach_optimizer": (_OPTIMIZERS, "foreach", None),
    "ddp_bucket_view": (_PARALLEL, "gradient_as_bucket_view", None),
    "ddp_unused_parameters": (_PARALLEL, "find_unused_parameters", None),
    "anomaly_mode": (frozenset(("set_detect_anomaly", "detect_anomaly")), "mode", 0),
}
"""Knob to the calls that it edits, the argument, and its position where it may be given by that."""

SWITCHES: Final = frozenset(("flush_denormal", "intra_op_threads", "matmul_precision"))
"""Knobs whose code is one statement that may stand below the imports."""


@dataclass(frozen=True)
class _Edit:
    """Text put in the place of a part of the source: offsets in characters."""

    begin: int
    end: int
    text: str


def patch(plan: Plan, sources: Mapping[str, str]) -> str:
    """Return a plan as text of a unified diff, with what no diff can say above it.

    sources: text of the user's files by path relative to the start directory, the entry script
    first.
    """
    edited = dict(sources)
    left: list[Choice] = []
    for one in plan.choices:
        done = False
        for file, text in edited.items():
            is_entry = file == next(iter(edited))
            changed = _edited(one, text, is_entry)
            if changed is not None:
                edited[file], done = changed, True
        if not done:
            left.append(one)
    return _words(plan, left) + "".join(
        _diff(file, sources[file], text) for file, text in edited.items()
    )


def _words(plan: Plan, left: list[Choice]) -> str:
    lines = ["# Written by hotlap tune; apply with: patch -p1 < FILE, or git apply FILE"]
    if plan.environment:
        lines.append("# Set before the training starts:")
        lines += [f"#   export {key}={shlex.quote(one)}" for key, one in plan.environment.items()]
    for one in left:
        if not one.environment:
            lines.append(f"# {one.knob} = {one.value} has to be put in by hand:")
            lines += [f"#   {line}" for line in one.snippet.splitlines()]
    return "\n".join(lines) + "\n"


def _diff(file: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{file}",
        f"b/{file}",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _edited(one: Choice, text: str, is_entry: bool) -> str | None:
    """Return a file's text with a knob in it; None where there is nothing to edit."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    offset = _offsets(text)
    if one.knob in SWITCHES:
        return _with_switch(one, text, tree, offset) if is_entry else None
    known = ARGUMENTS.get(one.knob)
    if known is None:
        return None
    names, argument, position = known
    edits = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in names:
            edit = _argument(node, argument, position, one.value, offset)
            if edit is None:
                return None  # half of the calls edited would be another change than was measured
            edits.append(edit)
    return _applied(text, edits) if edits else None


def _argument(
    call: ast.Call,
    name: str,
    position: int | None,
    value: Any,
    offset: Callable[[int, int], int],
) -> _Edit | None:
    """Return the edit that gives an argument to a call; None where it is given as ``**``."""
    given = next((one.value for one in call.keywords if one.arg == name), None)
    if given is None and position is not None and position < len(call.args):
        given = call.args[position]
    starred = any(one.arg is None for one in call.keywords)
    if starred or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if given is not None:
        return _Edit(_begin(given, offset), _end(given, offset), repr(value))
    after = max((_end(one, offset) for one in (*call.args, *call.keywords)), default=None)
    if after is None:
        close = _end(call, offset) - 1
        return _Edit(close, close, f"{name}={value!r}")
    return _Edit(after, after, f", {name}={value!r}")


def _with_switch(
    one: Choice, text: str, tree: ast.Module, offset: Callable[[int, int], int]
) -> str | None:
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = [alias for node in imports if isinstance(node, ast.Import) for alias in node.names]
    if not any(alias.name == "torch" and alias.asname is None for alias in names):
        return None  # under another name, or not in this file
    if len(one.snippet.splitlines()) != 1:
        return None
    at = _end(imports[-1], offset)
    return _applied(text, [_Edit(at, at, f"\n\n{one.snippet}")])


def _applied(text: str, edits: list[_Edit]) -> str:
    for edit in sorted(edits, key=lambda one: -one.begin):
        text = text[: edit.begin] + edit.text + text[edit.end :]
    return text


def _offsets(text: str) -> Callable[[int, int], int]:
    """Return what turns ast's line and column, in bytes of UTF-8, into an offset in characters."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        whole = lines[line - 1].encode("utf-8")
        return starts[line - 1] + len(whole[:column].decode("utf-8"))

    return offset


def _begin(node: ast.expr, offset: Callable[[int, int], int]) -> int:
    return offset(node.lineno, node.col_offset)


def _end(node: ast.AST, offset: Callable[[int, int], int]) -> int:
    line, column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
    if line is None or column is None:
        raise ValueError("the parser did not say where an expression ends")
    return offset(line, column)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
