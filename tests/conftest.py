"""What all tests share: where the checkout lies."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).resolve().parent.parent
