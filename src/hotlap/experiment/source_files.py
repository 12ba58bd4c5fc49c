"""The user's source files as text and as syntax trees. Nothing of theirs is imported or run."""

from __future__ import annotations

import ast
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hotlap.values.facts import SourceLine
from hotlap.values.record import Place

LONGEST: Final = 200
"""Characters of an expression that are kept."""
_MOST_BYTES: Final = 4 << 20
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OPERATIONS: Final = (
    ast.Call,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Subscript,
    ast.JoinedStr,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
    *_COMPREHENSIONS,
)
"""Expressions that do something by themselves; a name or a constant is a part of one."""

Span = tuple[int, int, int, int]


@dataclass(frozen=True)
class Module:
    """One source file. tree: None where it cannot be parsed by this Python."""

    lines: tuple[str, ...]
    tree: ast.Module | None
    parents: dict[ast.AST, ast.AST]


class SourceFiles:
    """Reads source files, each once.

    start: the start directory, which the names of files are relative to.
    """

    def __init__(self, start: Path) -> None:
        self._start = start
        self._known: dict[str, Module | None] = {}

    def module(self, file: str) -> Module | None:
        """Return a file; None for one that is missing, unreadable, or was never a file."""
        if file not in self._known:
            self._known[file] = self._read(file)
        return self._known[file]

    def _read(self, file: str) -> Module | None:
        if file.startswith("<"):
            return None  # what was typed in, or made while the program ran
        path = self._start / file
        try:
            if path.stat().st_size > _MOST_BYTES or not path.is_file():
                return None
            with tokenize.open(path) as handle:
                text = handle.read()
        except (OSError, SyntaxError, UnicodeError, ValueError):
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return Module(_lines(text), None, {})
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        return Module(_lines(text), tree, parents)

    # -- expressions -----------------------------------------------------------------------------

    def expression(self, place: Place, span: Span | None) -> str | None:
        """Return the text of the operation at ``span``; None where the file says nothing.

        A span that does not fit the line of ``place`` is that of a file that has changed since.
        """
        module = self.module(place.file)
        if module is None or span is None or not span[0] <= place.line <= span[1]:
            return None
        text = None
        if module.tree is not None:
            node = operation_at(module, span)
            text = None if node is None else self.text_of(module, node)
        if text is None:
            text = _cut(module.lines, span)
        return shortened(text) or None if text is not None else None

    def text_of(self, module: Module, node: ast.AST) -> str | None:
        """Return the source text of a node."""
        span = span_of(node)
        return None if span is None else _cut(module.lines, span)

    # -- lines -----------------------------------------------------------------------------------

    def line(self, place: Place) -> SourceLine | None:
        """Return what stands at a place, and what stands around it."""
        module = self.module(place.file)
        if module is None or not 0 < place.line <= len(module.lines):
            return None
        text = module.lines[place.line - 1].strip()
        if module.tree is None:
            return SourceLine(place, text)
        loops: list[int] = []
        function: int | None = None
        comprehension = False
        for node in _around(module.tree, place.line):
            if isinstance(node, _FUNCTIONS):
                if isinstance(node, ast.Lambda) and place.function != "<lambda>":
                    continue
                loops, function = [], node.lineno
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and _in_body(
                node, place.line
            ):
                loops.append(node.lineno)
            elif isinstance(node, _COMPREHENSIONS):
                comprehension = True
        return SourceLine(place, text, tuple(loops), function, comprehension)


def operation_at(module: Module, span: Span) -> ast.AST | None:
    """Return the innermost operation that an instruction with this span belongs to."""
    found: ast.AST | None = None
    if module.tree is not None:
        for node in _around(module.tree, span[0]):
            inside = span_of(node)
            if inside is not None and _covers(inside, span):
                found = node
    while found is not None and not isinstance(found, (*_OPERATIONS, ast.stmt)):
        found = module.parents.get(found)
    return _of_statement(found) if isinstance(found, ast.stmt) else found


def _of_statement(node: ast.stmt) -> ast.AST:
    """Return the part of a statement that takes time: not all of a loop's body."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.iter
    if isinstance(node, (ast.While, ast.If)):
        return node.test
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return node.items[0].context_expr
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)):
        return node.value if node.value is not None else node
    return node


def span_of(node: ast.AST) -> Span | None:
    """Return first and last line, first and last column (bytes of UTF-8) of a node."""
    first = getattr(node, "lineno", None)
    last = getattr(node, "end_lineno", None)
    begin = getattr(node, "col_offset", None)
    end = getattr(node, "end_col_offset", None)
    if first is None or last is None or begin is None or end is None:
        return None
    return first, last, begin, end


def shortened(text: str) -> str:
    """Return a text on one line, at most 200 characters of it."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _covers(outer: Span, inner: Span) -> bool:
    begins = (outer[0], outer[2]) <= (inner[0], inner[2])
    return begins and (inner[1], inner[3]) <= (outer[1], outer[3])


def _cut(lines: tuple[str, ...], span: Span) -> str | None:
    first, last, begin, end = span
    if not 0 < first <= last <= len(lines):
        return None
    taken = [line.encode() for line in lines[first - 1 : last]]
    taken[-1] = taken[-1][:end]
    taken[0] = taken[0][begin:]
    return b"\n".join(taken).decode(errors="replace")


def _around(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """Yield the nodes whose lines contain a line, outer ones before inner ones."""
    for child in ast.iter_child_nodes(node):
        span = span_of(child)
        first = span[0] if span else 0
        decorators = getattr(child, "decorator_list", None)
        if decorators:
            first = min(one.lineno for one in decorators)
        if span is None or first <= line <= span[1]:
            if span is not None and span[0] <= line:
                yield child
            yield from _around(child, line)


def _in_body(loop: ast.For | ast.AsyncFor | ast.While, line: int) -> bool:
    last = loop.body[-1].end_lineno or loop.body[-1].lineno
    return loop.body[0].lineno <= line <= last and line != loop.lineno


def _lines(text: str) -> tuple[str, ...]:
    # As Python counts them: a form feed or a Unicode separator ends no line.
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
