"""One undo stack for everything that hotlap changes in a user's process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MISSING = object()


class Patches:
    """Changes made, grouped by site, undone in reverse order.

    ``set`` on an attribute that the class only inherits is undone by deleting it again.
    """

    def __init__(self) -> None:
        self._undo: list[tuple[str, Callable[[], None]]] = []

    def set(self, site: str, owner: Any, name: str, value: Any) -> None:
        """Replace ``owner.name``; raises what ``setattr`` raises."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)

        def undo() -> None:
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
