"""What process tests share: a process that runs scripts bare."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from process.style_runs import Bare


@pytest.fixture(scope="session")
def forked() -> Iterator[Bare]:
    """Return a place where scripts train alone, at little cost."""
    made = Bare()
    yield made
    made.close()
