"""The size limits and names of the house."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from house.source import Function, functions

FILE_LINES = 400
LINE_CHARACTERS = 100
FUNCTION_LINES = 60
PARAMETERS = 8
PRAGMA = re.compile(r"\s*# (type: ignore|noqa)\b.*$")
"""An ignore with its reason, which has to stand on the line and does not count, as in ruff."""
FORBIDDEN = {"common", "commons", "helper", "helpers", "misc", "util", "utils"}


def complaints(path: Path, root: Path) -> list[str]:
    """Return what a file breaks: its size, lines, functions, signatures and its name.

    root: places and names are told relative to it.
    """
    inside = path.relative_to(root)
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = [
        f"{inside}: no module or folder is called {part}"
        for part in (*inside.parent.parts, inside.stem)
        if part in FORBIDDEN
    ]
    if len(lines) > FILE_LINES:
        found.append(f"{inside}: {len(lines)} lines, more than {FILE_LINES}")
    found += [
        f"{inside}:{number}: {len(line)} characters, more than {LINE_CHARACTERS}"
        for number, line in enumerate(lines, start=1)
        if len(PRAGMA.sub("", line)) > LINE_CHARACTERS
    ]
    for function in functions(ast.parse(text)):
        found += [f"{inside}:{function.lineno}: {words}" for words in _function(function)]
    return found


def _function(function: Function) -> list[str]:
    """Return what one function breaks."""
    found = []
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    if length > FUNCTION_LINES:
        found.append(f"{function.name} has {length} lines, more than {FUNCTION_LINES}")
    width = len(parameters(function))
    if width > PARAMETERS:
        found.append(f"{function.name} takes {width} parameters, more than {PARAMETERS}")
    return found


def parameters(function: Function) -> list[str]:
    """Return the names of a function's parameters, without ``self`` and ``cls``."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    names = [argument.arg for argument in named]
    names += [argument.arg for argument in (given.vararg, given.kwarg) if argument is not None]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def prints(path: Path) -> list[int]:
    """Return the lines on which a file calls ``print``."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
