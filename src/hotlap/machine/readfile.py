"""Read small files that may not be there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path("/")
"""The folder that holds ``proc``, ``sys`` and ``dev``; tests give another."""


def read(path: Path | str) -> str | None:
    """Return the text of a file, or None when it cannot be read (missing, forbidden, a folder)."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def read_int(path: Path | str) -> int | None:
    """Return the one integer that a file holds, or None when there is no such file or number."""
    text = read(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def key_values(text: str) -> dict[str, int]:
    """Parse lines of a name and an integer (``memory.stat``, ``vmstat``); others are skipped.

    A colon after the name and a unit after the number are allowed (``meminfo``, ``io``).
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2:
            continue
        try:
            found[words[0].rstrip(":")] = int(words[1])
        except ValueError:
            continue
    return found
