"""Caches of functions (``functools.lru_cache``) in the user's modules: how often they were hit."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

_MOST: Final = 16
_WRAPPER: Final = type(functools.lru_cache(maxsize=1)(lambda: None))


def function_caches(
    is_users: Callable[[str], bool], shown: Callable[[str], str]
) -> dict[str, list[list[Any]]]:
    """Return file, line, name, hits, misses, most and present entries of each bounded cache.

    Of functions and methods of modules of the user's, in this process. is_users, shown: of
    ``probe.places.Places``. Empty for none. Cost: a look at each name of these modules.
    """
    found: dict[int, list[Any]] = {}
    for name, module in list(sys.modules.items()):
        if not issubclass(type(module), ModuleType):
            continue
        # Not by `getattr` and `isinstance`: modules and proxies that load late would load now.
        file = vars(module).get("__file__")
        # Python takes the script's own name away as soon as its last line has run.
        if name != "__main__" and not (isinstance(file, str) and is_users(file)):
            continue
        for one in _caches_of(module):
            info, code = one.cache_info(), getattr(one.__wrapped__, "__code__", None)
            if info.maxsize is not None and code is not None and is_users(code.co_filename):
                place = [shown(code.co_filename), code.co_firstlineno, code.co_name]
                found[id(one)] = [*place, info.hits, info.misses, info.maxsize, info.currsize]
    return {"function_caches": list(found.values())[:_MOST]} if found else {}


def _caches_of(module: Any) -> Iterator[Any]:
    for value in list(vars(module).values()):
        if type(value) is _WRAPPER:
            yield value
        elif issubclass(type(value), type) and value.__module__ == module.__name__:
            held = (_plain(one) for one in list(vars(value).values()))
            yield from (one for one in held if type(one) is _WRAPPER)


def _plain(value: Any) -> Any:
    return value.__func__ if type(value) in (staticmethod, classmethod) else value
