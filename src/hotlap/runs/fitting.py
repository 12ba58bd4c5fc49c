"""What JSON holds becomes values, after a look at its types: a file may hold anything.

Fields that a value does not have are left out: a later minor version may write more of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from hotlap.values.phase import ACCOUNTS
from hotlap.values.record import Loader, Place, Touch, Window

UNFIT: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""What is raised by content that is not what it should be."""

_SIGNED: Final = frozenset(("optimizer",))
"""Whole numbers that may be negative."""

T = TypeVar("T")


def fitted(kind: type[T], value: Any) -> T:
    """Return a value of class ``kind`` (a dataclass) from a JSON object.

    Raises TypeError when a field is missing or of another type, ValueError when a count, time or
    size is negative.
    """
    if not isinstance(value, dict):
        raise TypeError(f"{kind.__name__} is {_shown(value)}, no object")
    shape: Any = kind
    hints = _hints(shape)
    known = {name: value[name] for name in hints if name in value}
    for name, one in known.items():
        need(one, hints[name], name)
        if isinstance(one, int) and one < 0 and name not in _SIGNED:
            raise ValueError(f"{name} is {one}, a negative number")
    return kind(**known)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind)}


def need(value: Any, hint: Any, name: str) -> Any:
    """Return ``value``; raises TypeError, naming it, when it is not of the type ``hint``."""
    if not _fits(value, hint):
        raise TypeError(f"{name} is {_shown(value)}")
    return value


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items()
        )
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def words(error: BaseException) -> str:
    """Say what was wrong with the content; a bare KeyError names the key only."""
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def accounts_of(value: Any) -> tuple[int, ...]:
    """Return time accounts, one per name in ``ACCOUNTS``.

    New accounts come last: a file with fewer has nothing on them, one with more loses those.
    """
    if not isinstance(value, list):
        raise TypeError(f"accounts is {_shown(value)}, no list")
    found: tuple[int, ...] = need(tuple(value), tuple[int, ...], "accounts")
    return (*found, *(0,) * (len(ACCOUNTS) - len(found)))[: len(ACCOUNTS)]


def hello_of(value: Any) -> dict[str, Any]:
    """Return the first record of a process."""
    hello: dict[str, Any] = need(value, dict[str, Any], "hello")
    for name in ("host", "python"):
        need(hello[name], str, name)
    for name in ("pid", "start_ns"):
        need(hello[name], int, name)
    for name in ("rank", "local_rank", "world_size"):
        need(hello[name], int | None, name)
    need(hello["argv"], list, "argv")
    return hello


def window_of(value: Any) -> Window:
    """Return a window; JSON has the keys of its tables as text."""
    window = dict(value)
    for name in ("by_optimizer", "histogram"):
        window[name] = {int(key): count for key, count in window[name].items()}
    window["accounts"] = accounts_of(window["accounts"])
    return fitted(Window, window)


def loader_of(value: Any) -> Loader:
    """Return a loader with its place."""
    loader = dict(value)
    loader["place"] = _place_of(loader["place"])
    loader["base_seeds"] = tuple(need(loader.get("base_seeds", []), list, "base_seeds"))
    return fitted(Loader, loader)


def touch_of(value: Any) -> Touch:
    """Return a touch with its place."""
    touch = dict(value)
    touch["place"] = _place_of(touch["place"])
    return fitted(Touch, touch)


def _place_of(value: Any) -> Place | None:
    return None if value is None else fitted(Place, value)


def whole(table: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number, None where there is none."""
    value = table.get(name)
    return value if _fits(value, int) else None


def text(table: Mapping[str, Any], name: str) -> str:
    """Return a text, empty where there is none."""
    value = table.get(name)
    return value if isinstance(value, str) else ""


def listed(table: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list, empty where there is none."""
    value = table.get(name)
    return value if isinstance(value, list) else []


def table(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table, empty where there is none."""
    value = table.get(name)
    return dict(value) if isinstance(value, dict) else {}
