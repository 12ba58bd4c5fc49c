"""Which logger writes each line how often to the same place."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotlap.inject.conditions.log_handlers import most_repeated


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    made = logging.getLogger("hotlap.test.handlers.inner")
    made.propagate = True
    above = logging.getLogger("hotlap.test.handlers")
    above.propagate = False
    yield made
    for one in (made, above):
        for handler in list(one.handlers):
            handler.close()
            one.removeHandler(handler)


def test_handlers_of_one_file_are_counted_and_others_are_not(
    logger: logging.Logger, tmp_path: Path
) -> None:
    for _ in range(30):
        logger.addHandler(logging.FileHandler(tmp_path / "log", delay=True))
    logger.addHandler(logging.FileHandler(tmp_path / "other", delay=True))
    logger.addHandler(logging.NullHandler())
    assert most_repeated() == (logger.name, 30)


def test_what_the_loggers_above_write_counts_as_far_as_lines_get_there(
    logger: logging.Logger,
) -> None:
    stream = io.StringIO()
    for one in (logger, logger.parent):
        assert one is not None
        for _ in range(20):
            one.addHandler(logging.StreamHandler(stream))
    assert most_repeated() == (logger.name, 40)
    logger.propagate = False
    assert (most_repeated() or ("", 0))[1] == 20
