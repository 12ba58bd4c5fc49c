"""What all tests share: where the checkout lies, and which tests go to the same worker."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

# Under nohup, or in the background of a script, these are ignored, and so they would be by every
# child that is to end by them.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together what shares a fixture of a module, so that no two workers compute it."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and _shares(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to go on where groups are not seen, and all workers would make the same runs."""
    if not getattr(session.config.option, "loadgroup", False):
        return
    for item in session.items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError("this pytest-xdist does not group tests: see pyproject.toml")


def _shares(item: pytest.Item) -> bool:
    found = getattr(item, "_fixtureinfo", None)
    if found is None:
        return False
    return any(one[-1].scope == "module" for one in found.name2fixturedefs.values() if one)
