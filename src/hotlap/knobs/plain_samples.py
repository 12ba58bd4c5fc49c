"""Data sets whose samples are rows of arrays, and how a whole batch of them is taken at once.

A plan is read from the byte code of ``__getitem__``, which may hold nothing but attributes of the
data set, subscripts by the index, conversions that act on each element, and the tuple, list or dict
that is returned. Anything else, and anything that is not known, makes no plan.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

_DEEP: Final = 8
_MAKES: Final = ("tensor", "as_tensor", "from_numpy")
_CASTS: Final = frozenset("float double half int long short bool bfloat16 clone contiguous".split())
_COPIES: Final = ("copy", "astype")
_NOT_PLAIN: Final = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


class Index(NamedTuple):
    """The index itself."""


class Own(NamedTuple):
    """The data set."""


class Field(NamedTuple):
    """An attribute of the data set."""

    name: str


class Row(NamedTuple):
    """The row of a field at the index."""

    name: str


class Constant(NamedTuple):
    """A value that is written in the code."""

    value: Any


class Name(NamedTuple):
    """A module or a function: ``torch``, ``torch.tensor``, ``int``."""

    dotted: str


class Method(NamedTuple):
    """A method of a row, looked up."""

    node: Any
    name: str


class Converted(NamedTuple):
    """A row after a conversion of each of its elements. how: ``int``, ``tensor``, ``.float`` …"""

    node: Any
    how: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]


class Made(NamedTuple):
    """What is returned. kind: tuple, list or dict; keys: of a dict."""

    kind: type
    nodes: tuple[Any, ...]
    keys: tuple[Any, ...] = ()


class NoPlan(Exception):
    """The code is more than this module understands."""


def plan_of(dataset: Any) -> Any:
    """Return how the data set makes a sample, a tree of the above; raises NoPlan."""
    torch = sys.modules["torch"]
    kind = type(dataset)
    if kind is torch.utils.data.TensorDataset:
        return Made(tuple, tuple(Row(str(i)) for i in range(len(dataset.tensors))))
    function = next(
        (vars(one)["__getitem__"] for one in kind.__mro__ if "__getitem__" in vars(one)), None
    )
    if type(function) is not FunctionType:
        raise NoPlan("its __getitem__ is no function of Python's")
    if _looks_up_itself(kind) or "__getitem__" in vars(dataset):
        raise NoPlan("it looks up its attributes in a way of its own")
    if getattr(dataset, "__getitems__", None):
        raise NoPlan("it makes batches itself")
    return _Reader(function).read()


def bottom_of(dataset: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the data set below ``Subset``s, and these, outermost first; raises NoPlan."""
    subset = sys.modules["torch"].utils.data.Subset
    around: list[Any] = []
    while type(dataset) is subset and len(around) < _DEEP:
        around.append(dataset)
        dataset = dataset.dataset
    return dataset, tuple(around)


def _looks_up_itself(kind: Any) -> bool:
    return any("__getattribute__" in vars(one) for one in kind.__mro__ if one is not object)


class _Reader:
    """Goes through a function's code with symbols in the place of values."""

    def __init__(self, function: FunctionType) -> None:
        code = function.__code__
        if code.co_argcount != 2 or code.co_kwonlyargcount or code.co_flags & _NOT_PLAIN:
            raise NoPlan("its __getitem__ takes more than an index, or is a generator")
        self._function = function
        self._locals: dict[str, Any] = dict(
            zip(code.co_varnames[:2], (Own(), Index()), strict=True)
        )
        self._stack: list[Any] = []
        self._keywords: tuple[str, ...] = ()

    def read(self) -> Any:
        for one in dis.get_instructions(self._function):
            if one.opname in ("RETURN_VALUE", "RETURN_CONST"):
                if one.opname == "RETURN_CONST" or not self._stack:
                    break
                return _returned(self._stack.pop())
            step = _STEPS.get(one.opname)
            if step is None:
                raise NoPlan(f"its __getitem__ does more than take rows ({one.opname})")
            if one.opname == "KW_NAMES":
                self.keywords(self._function.__code__.co_consts[one.arg or 0])
            else:
                step(self, one.argval if one.opname != "BINARY_OP" else one.argrepr)
        raise NoPlan("its __getitem__ returns nothing that it takes")

    # -- one per kind of instruction ---------------------------------------------------------------

    def nothing(self, _: Any) -> None:
        pass

    def load(self, names: Any) -> None:
        for name in names if isinstance(names, tuple) else (names,):
            if name not in self._locals:
                raise NoPlan("its __getitem__ uses a variable that it has not set")
            self._stack.append(self._locals[name])

    def store(self, name: Any) -> None:
        self._locals[name] = self._pop()

    def store_and_load(self, names: Any) -> None:
        self.store(names[0])
        self.load(names[1])

    def constant(self, value: Any) -> None:
        self._stack.append(Constant(value))

    def attribute(self, name: Any) -> None:
        of = self._pop()
        if isinstance(of, Own):
            self._stack.append(Field(name))
        elif isinstance(of, Name):
            self._stack.append(Name(f"{of.dotted}.{name}"))
        elif isinstance(of, Row | Converted):
            self._stack.append(Method(of, name))
        else:
            raise NoPlan(f"its __getitem__ asks for {name} of something else than a row")

    def name(self, name: Any) -> None:
        name = str(name).removeprefix("NULL + ")
        held = self._function.__globals__.get(name, getattr(builtins, name, None))
        known = {"torch": sys.modules["torch"], "int": int, "float": float}
        numpy = sys.modules.get("numpy")
        if held is not None and held is numpy:
            self._stack.append(Name("numpy"))
        elif name in known and held is known[name]:
            self._stack.append(Name(name))
        else:
            raise NoPlan(f"its __getitem__ uses {name}")

    def subscript(self, sign: Any) -> None:
        if sign not in (None, "[]"):
            raise NoPlan("its __getitem__ computes")
        index, of = self._pop(), self._pop()
        if not isinstance(of, Field) or not isinstance(index, Index):
            raise NoPlan("its __getitem__ takes something else than a row by the index")
        self._stack.append(Row(of.name))

    def keywords(self, names: Any) -> None:
        if not isinstance(names, tuple):
            raise NoPlan("its __getitem__ calls in a way that is not known")
        self._keywords = names

    def call(self, count: Any) -> None:
        names, self._keywords = self._keywords, ()
        given = self._pop_some(int(count))
        split = len(given) - len(names)
        function = self._pop()
        self._stack.append(
            _called(function, given[:split], tuple(zip(names, given[split:], strict=True)))
        )

    def call_with_keywords(self, count: Any) -> None:
        names = self._pop()
        if not isinstance(names, Constant):
            raise NoPlan("its __getitem__ calls in a way that is not known")
        self._keywords = names.value
        self.call(count)

    def build_tuple(self, count: Any) -> None:
        self._stack.append(Made(tuple, self._pop_some(int(count))))

    def build_list(self, count: Any) -> None:
        self._stack.append(Made(list, self._pop_some(int(count))))

    def build_map(self, count: Any) -> None:
        both = self._pop_some(2 * int(count))
        self._stack.append(Made(dict, both[1::2], _keys(both[::2])))

    def build_map_of_constant_keys(self, count: Any) -> None:
        keys = self._pop()
        if not isinstance(keys, Constant):
            raise NoPlan("its __getitem__ makes a dict in a way that is not known")
        self._stack.append(Made(dict, self._pop_some(int(count)), tuple(keys.value)))

    def _pop(self) -> Any:
        if not self._stack:
            raise NoPlan("its code is not understood")
        return self._stack.pop()

    def _pop_some(self, count: int) -> tuple[Any, ...]:
        if count > len(self._stack):
            raise NoPlan("its code is not understood")
        if not count:
            return ()
        found = tuple(self._stack[-count:])
        del self._stack[-count:]
        return found


def _keys(nodes: Sequence[Any]) -> tuple[Any, ...]:
    if not all(isinstance(one, Constant) for one in nodes):
        raise NoPlan("its __getitem__ makes a dict with keys that it computes")
    return tuple(one.value for one in nodes)


def _called(function: Any, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> Converted:
    """Return what a call gives, if it is one that acts on each element of a row."""
    if isinstance(function, Method) and function.name in (*_CASTS, *_COPIES):
        return Converted(function.node, f".{function.name}", _plain(args), _plain_pairs(kwargs))
    if isinstance(function, Name) and args and isinstance(args[0], Row | Converted):
        head, _, how = function.dotted.rpartition(".")
        if (head == "torch" and how in _MAKES) or (not head and how in ("int", "float")):
            return Converted(args[0], how, _plain(args[1:]), _plain_pairs(kwargs))
    raise NoPlan("its __getitem__ calls something that is not known to act on each element")


def _plain(nodes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_plain_value(one) for one in nodes)


def _plain_pairs(pairs: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _plain_value(one)) for name, one in pairs)


def _plain_value(node: Any) -> Any:
    """Return a constant, or a type of torch's or numpy's by its name."""
    if isinstance(node, Constant) and isinstance(node.value, str | bool | None):
        return node.value
    if isinstance(node, Name) and node.dotted.count(".") == 1:
        module, name = node.dotted.split(".")
        value = getattr(sys.modules[module], name, None)
        if isinstance(value, type) or type(value).__name__ == "dtype":
            return value
    raise NoPlan("its __getitem__ passes on something that is not known")


def _returned(node: Any) -> Any:
    """Return a tree that ends in rows and indices only."""
    if isinstance(node, Made) and node.nodes:
        for one in node.nodes:
            _returned(one)
        return node
    if isinstance(node, Row | Converted | Index):
        return node
    raise NoPlan("its __getitem__ returns something else than rows")


_STEPS: Final[dict[str, Callable[[_Reader, Any], None]]] = {
    **dict.fromkeys(
        ("RESUME", "NOP", "PUSH_NULL", "PRECALL", "CACHE", "NOT_TAKEN"), _Reader.nothing
    ),
    **dict.fromkeys(
        (
            "LOAD_FAST",
            "LOAD_FAST_BORROW",
            "LOAD_FAST_LOAD_FAST",
            "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
        ),
        _Reader.load,
    ),
    "STORE_FAST": _Reader.store,
    "STORE_FAST_LOAD_FAST": _Reader.store_and_load,
    **dict.fromkeys(("LOAD_CONST", "LOAD_SMALL_INT"), _Reader.constant),
    **dict.fromkeys(("LOAD_ATTR", "LOAD_METHOD"), _Reader.attribute),
    "LOAD_GLOBAL": _Reader.name,
    **dict.fromkeys(("BINARY_SUBSCR", "BINARY_OP"), _Reader.subscript),
    "KW_NAMES": _Reader.keywords,
    **dict.fromkeys(("CALL", "CALL_FUNCTION", "CALL_METHOD"), _Reader.call),
    **dict.fromkeys(("CALL_KW", "CALL_FUNCTION_KW"), _Reader.call_with_keywords),
    "BUILD_TUPLE": _Reader.build_tuple,
    "BUILD_LIST": _Reader.build_list,
    "BUILD_MAP": _Reader.build_map,
    "BUILD_CONST_KEY_MAP": _Reader.build_map_of_constant_keys,
}
