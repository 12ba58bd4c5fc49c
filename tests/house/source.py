"""Python files as the house rules see them: their imports, functions and lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

AT_IMPORT = "at import"
IN_FUNCTION = "in a function"
FOR_TYPES = "for types"


@dataclass(frozen=True)
class Import:
    """One imported name: ``from a.b import c`` is module ``a.b``, name ``c``.

    module: "" with ``level`` 1 or more for ``from . import c``. name: None for ``import a.b``.
    when: at import, in a function, or for types (below ``if TYPE_CHECKING``).
    """

    module: str
    name: str | None
    level: int
    line: int
    when: str


def python_files(*roots: Path) -> Iterator[Path]:
    """Yield every Python file below the roots that exist, in order."""
    for root in roots:
        yield from sorted(root.rglob("*.py"))


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function and method of a file, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def imports(path: Path) -> list[Import]:
    """Return every import of a file, wherever it stands, ``import_module("a.b")`` included."""
    found: list[Import] = []
    _collect(ast.parse(path.read_text(encoding="utf-8")), AT_IMPORT, found)
    return found


def _collect(node: ast.AST, when: str, found: list[Import]) -> None:
    if isinstance(node, ast.Import):
        found += [Import(alias.name, None, 0, node.lineno, when) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        module, level = node.module or "", node.level
        found += [Import(module, alias.name, level, node.lineno, when) for alias in node.names]
    elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
        for word in node.args[:1]:
            if isinstance(word, ast.Constant) and isinstance(word.value, str):
                found.append(Import(word.value, None, 0, node.lineno, when))
    if isinstance(node, ast.If) and _is_type_checking(node.test):
        for typed in node.body:
            _collect(typed, FOR_TYPES, found)
        for otherwise in node.orelse:
            _collect(otherwise, when, found)
        return
    inner = IN_FUNCTION if isinstance(node, Function | ast.Lambda) and when == AT_IMPORT else when
    for child in ast.iter_child_nodes(node):
        _collect(child, inner, found)


def _called(node: ast.Call) -> str:
    """Return the last part of the name that is called."""
    target = node.func
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _is_type_checking(test: ast.expr) -> bool:
    if isinstance(test, ast.Attribute):
        return test.attr == "TYPE_CHECKING"
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
