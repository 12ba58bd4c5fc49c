"""What is patched is undone after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotlap.sites.patches import Patches


@pytest.fixture
def patches() -> Iterator[Patches]:
    given = Patches()
    yield given
    given.undo()
