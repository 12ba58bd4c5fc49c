"""Which line an operator stands on where Python tells of no call: ``a @ b``, ``x[i]``.

The source says which lines hold such an operator, in the order in which they are evaluated; the
calls before and after, whose lines are known, say how far the function has come.
"""

from __future__ import annotations

import ast
import tokenize
import warnings
from collections.abc import Iterator
from typing import Final

_OPERATORS: Final = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shift",
    ast.RShift: "shift",
    ast.USub: "neg",
    ast.Invert: "not",
}
_SUBSCRIPT: Final = "subscript"
_COMPARE: Final = "compare"
_TEST: Final = "test"
_KINDS: Final = {
    **{name: name for name in _OPERATORS.values()},
    "rsub": "sub",
    "true_divide": "div",
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "dot": "matmul",
    "bitwise_and": "and",
    "logical_and": "and",
    "bitwise_or": "or",
    "logical_or": "or",
    "bitwise_xor": "xor",
    "bitwise_not": "not",
    "logical_not": "not",
    **dict.fromkeys(("index", "select", "slice", "index_put", "copy", "fill"), _SUBSCRIPT),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _COMPARE),
    **dict.fromkeys(("is_nonzero", "item"), _TEST),
}
"""torch's name of an operator, without ``aten::`` and a last underscore, to the source's."""
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_NAMELESS: Final = {
    "<lambda>": (ast.Lambda,),
    "<listcomp>": (ast.ListComp,),
    "<setcomp>": (ast.SetComp,),
    "<dictcomp>": (ast.DictComp,),
    "<genexpr>": (ast.GeneratorExp,),
}

Stop = tuple[str, int]
"""What stands there, and on which line."""


class OperatorLines:
    """Reads the functions of source files, each once."""

    def __init__(self) -> None:
        self._trees: dict[str, ast.Module | None] = {}
        self._stops: dict[tuple[str, int, str], list[Stop]] = {}

    def course(self, path: str, first: int, function: str) -> Course:
        """Return the course of one run through a function, which begins on line ``first``."""
        key = path, first, function
        if key not in self._stops:
            scope = self._scope(path, first, function)
            self._stops[key] = [] if scope is None else list(_stops_of(scope))
        return Course(self._stops[key])

    def _scope(self, path: str, first: int, function: str) -> ast.AST | None:
        if path not in self._trees:
            self._trees[path] = _parsed(path)
        tree = self._trees[path]
        if tree is None or function == "<module>":
            return tree
        kinds = _NAMELESS.get(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                decorators = getattr(node, "decorator_list", ())
                begins = {getattr(one, "lineno", 0) for one in (node, *decorators)}
                if first in begins and getattr(node, "name", function) == function:
                    return node
        return None


class Course:
    """How far a run through a function has come."""

    def __init__(self, stops: list[Stop]) -> None:
        self._stops = stops
        self._at = -1

    def called(self, line: int) -> None:
        """A call was made from a line: what stands before it is behind."""
        self._at = -1
        for number, (_, stands) in enumerate(self._stops):
            if stands < line:
                self._at = number

    def line(self, name: str, before: int | None) -> int | None:
        """Return the line of the next operator of a name; None where there is none.

        before: the line of the next call that is known, None if there is none.
        """
        kind = _KINDS.get(name.removeprefix("aten::").rstrip("_"))
        order = [*range(self._at + 1, len(self._stops)), *range(self._at + 1)]
        fits = [number for number in order if self._stops[number][0] == kind]
        if before is not None:
            # Beyond the next call only if that lies further back: a loop has begun again.
            fits = [number for number in fits if self._stops[number][1] <= before] or fits
        if not fits:
            return None
        self._at = fits[0]
        return self._stops[self._at][1]


def _parsed(path: str) -> ast.Module | None:
    try:
        with tokenize.open(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _stops_of(scope: ast.AST) -> Iterator[Stop]:
    """Yield the operators of a function in the order in which they are evaluated."""
    for child in _in_order(scope):
        if not isinstance(child, _SCOPES):
            yield from _stops_of(child)
            yield from _stop_of(child)


def _in_order(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [node.value, *targets]
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [node.iter, node.target, *node.body, *node.orelse]
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return [*node.generators, node.elt]
    if isinstance(node, ast.DictComp):
        return [*node.generators, node.key, node.value]
    return list(ast.iter_child_nodes(node))


def _stop_of(node: ast.AST) -> Iterator[Stop]:
    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.UnaryOp)):
        kind = _OPERATORS.get(type(node.op))
        if kind is not None:
            yield kind, node.lineno
        elif isinstance(node, ast.UnaryOp):
            yield _TEST, node.lineno
    elif isinstance(node, ast.Subscript):
        yield _SUBSCRIPT, node.lineno
    elif isinstance(node, ast.Compare):
        yield _COMPARE, node.lineno
    for test in (getattr(node, "test", None), *getattr(node, "values", ())):
        if isinstance(test, ast.expr):
            yield _TEST, test.lineno
