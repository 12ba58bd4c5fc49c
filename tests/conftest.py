"""What all tests share: where the checkout lies, and which tests go to the same worker."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from house.groups import without_group

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


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep failed tests by the names that they have without groups, for ``--last-failed``."""
    cache = getattr(session.config, "cache", None)
    if cache is None or hasattr(session.config, "workerinput"):
        return
    failed = cache.get("cache/lastfailed", {})
    cache.set("cache/lastfailed", {without_group(name): True for name in failed})


def _shares(item: pytest.Item) -> bool:
    found = getattr(item, "_fixtureinfo", None)
    if found is None:
        return False
    return any(one[-1].scope == "module" for one in found.name2fixturedefs.values() if one)
