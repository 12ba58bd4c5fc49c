"""Other Pythons on this machine, found where version managers and systems put them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

PYTHONS = ((2, 7), (3, 6), (3, 8), (3, 10), (3, 11), (3, 12), (3, 13), (3, 14))
"""Those that tests ask for."""


def python_or_skip(version: tuple[int, ...]) -> str:
    """Return the interpreter of a version; skips the test, with the reason, where it is missing."""
    name = ".".join(map(str, version))
    found = sorted(Path.home().glob(f".pyenv/versions/{name}.*/bin/python"))
    if found:
        return str(found[-1])
    on_path = shutil.which(f"python{name}")
    if on_path is None or "/shims/" in on_path:
        pytest.skip(f"Python {name} is not on this machine")
    return on_path
