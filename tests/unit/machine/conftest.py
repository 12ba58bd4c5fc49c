"""A fake root folder, so that machines which we do not have can be read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from unit.machine.machines import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return a function that writes files by their path under a new root, and returns the root."""

    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "root" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "root"

    return write
