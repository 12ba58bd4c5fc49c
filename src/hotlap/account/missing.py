"""What was not measured, and why: collected while a record is summed up."""

from __future__ import annotations


class Missing:
    """Reasons by name, in the order in which they were found; the first reason of a name stays."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def note(self, what: str, because: str) -> None:
        """Note that something was not measured, with the reason in words."""
        self._reasons.setdefault(what, because)

    def all(self) -> tuple[tuple[str, str], ...]:
        """Return pairs of what and why."""
        return tuple(self._reasons.items())
