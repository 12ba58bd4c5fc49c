"""One undo stack for everything that hotlap changes in a user's process."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import CodeType
from typing import Any

_MISSING = object()
_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PASSED_OVER = _FOLDER + "importlib_bootstrap.py"


class Patches:
    """Changes made, grouped by site, undone in reverse order.

    ``set`` on an attribute that the class only inherits is undone by deleting it again.
    """

    def __init__(self) -> None:
        self._undo: list[tuple[str, Callable[[], None]]] = []
        self._set: set[tuple[int, str]] = set()
        self._codes: set[CodeType] = set()

    def hold(self, owner: Any, name: str) -> bool:
        """Tell whether ``owner.name`` has been replaced by us and not undone."""
        return (id(owner), name) in self._set

    def codes(self) -> set[CodeType]:
        """Return the code of every function of ours that runs within the user's calls."""
        return self._codes

    def code(self, function: Any) -> None:
        """Add the code of a function of ours that runs within the user's calls."""
        code = getattr(function, "__code__", None)
        if code is not None:
            self._codes.add(code)

    def set(self, site: str, owner: Any, name: str, value: Any) -> None:
        """Replace ``owner.name``; raises what ``setattr`` raises."""
        _pass_over(getattr(value, "__func__", value))
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self.code(getattr(value, "__func__", value))
        self._set.add((id(owner), name))

        def undo() -> None:
            self._set.discard((id(owner), name))
            if vars(owner).get(name, _MISSING) is not value:
                return  # someone wrapped or replaced it after us: theirs stays
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.append((site, undo))

    def later(self, site: str, undo: Callable[[], None]) -> None:
        """Remember how to undo a change that was made in another way."""
        self._undo.append((site, undo))

    def undo(self, site: str | None = None) -> None:
        """Undo one site, or everything. Never raises: what cannot be undone is left."""
        keep: list[tuple[str, Callable[[], None]]] = []
        for owner, undo in reversed(self._undo):
            if site is not None and owner != site:
                keep.append((owner, undo))
                continue
            try:
                undo()
            except Exception:
                continue
        self._undo = keep[::-1]


def _pass_over(function: Any) -> None:
    """Let warnings that torch lays at its caller's door name the user's line, not ours.

    ``warnings`` passes over frames whose file is named like those of the import system.
    """
    code = getattr(function, "__code__", None)
    if code is not None and code.co_filename.startswith(_FOLDER):
        function.__code__ = code.replace(co_filename=_PASSED_OVER)
