"""One undo stack for everything that hotlap changes in a user's process."""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from types import CodeType
from typing import Any

_MISSING = object()
_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_KNOBS = os.path.join(os.path.dirname(os.path.dirname(_FOLDER)), "knobs") + os.sep
_PASSED_OVER = _FOLDER + "importlib_bootstrap.py"


class Patches:
    """Changes made, grouped by site, undone in reverse order.

    ``set`` on an attribute that the class only inherits is undone by deleting it again.
    """

    def __init__(self) -> None:
        self._undo: list[tuple[str, Callable[[], None]]] = []
        self._set: set[tuple[int, str]] = set()
        self._codes: set[CodeType] = set()
        self._compiled: list[tuple[str, Any, Callable[[], None]]] = []
        self._python_only = False

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
        """Replace ``owner.name``; raises what ``setattr`` raises.

        value: a function, or a compiled hook, which knows the function that it spares.
        """
        plain = in_python(value)
        _pass_over(getattr(plain, "__func__", plain))
        before = vars(owner).get(name, _MISSING)
        put = [plain if self._python_only else value]
        setattr(owner, name, put[0])
        self.code(getattr(plain, "__func__", plain))
        self._set.add((id(owner), name))

        def to_python() -> None:
            if vars(owner).get(name, _MISSING) is put[0]:
                put[0] = plain
                setattr(owner, name, plain)

        if put[0] is not plain:
            self._compiled.append((site, value, to_python))

        def undo() -> None:
            self._set.discard((id(owner), name))
            if vars(owner).get(name, _MISSING) is not put[0]:
                return  # someone wrapped or replaced it after us: theirs stays
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.append((site, undo))

    def put(self, site: str, registered: MutableMapping[Any, Any], key: Any, hook: Any) -> None:
        """Put a compiled hook in the place of the wrapper that has been registered under a key."""
        self.code(in_python(hook))
        if self._python_only:
            return
        registered[key] = hook

        def to_python() -> None:
            if registered.get(key) is hook:
                registered[key] = in_python(hook)

        self._compiled.append((site, hook, to_python))

    def to_python(self) -> dict[int, tuple[Any, Any]]:
        """Put wrappers in Python in the place of all compiled hooks, for good.

        What is compiled cannot be traced. Returns the pairs (hook, wrapper) by the hook's id.
        """
        self._python_only = True
        compiled, self._compiled = self._compiled, []
        for _, hook, put in compiled:
            hook.step_aside()
            put()
        return {id(hook): (hook, in_python(hook)) for _, hook, _ in compiled}

    def later(self, site: str, undo: Callable[[], None]) -> None:
        """Remember how to undo a change that was made in another way."""
        self._undo.append((site, undo))

    def undo(self, site: str | None = None) -> None:
        """Undo one site, or everything. Never raises: what cannot be undone is left."""
        keep: list[tuple[str, Callable[[], None]]] = []
        for owner, hook, _ in self._compiled:
            if site in (None, owner):
                hook.step_aside()  # it may be held elsewhere, and called again
        self._compiled = [one for one in self._compiled if site not in (None, one[0])]
        for owner, undo in reversed(self._undo):
            if site is not None and owner != site:
                keep.append((owner, undo))
                continue
            try:
                undo()
            except Exception:
                continue
        self._undo = keep[::-1]


def in_python(value: Any) -> Any:
    """Return the wrapper in Python that a compiled hook spares; anything else itself."""
    return value.fallback if hasattr(type(value), "step_aside") else value


def _pass_over(function: Any) -> None:
    """Let warnings that torch lays at its caller's door name the user's line, not ours.

    ``warnings`` passes over frames whose file is named like those of the import system.
    """
    code = getattr(function, "__code__", None)
    if code is not None and code.co_filename.startswith((_FOLDER, _KNOBS)):
        function.__code__ = code.replace(co_filename=_PASSED_OVER)
