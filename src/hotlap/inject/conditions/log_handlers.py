"""Loggers whose lines several handlers write to the same place."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any


def most_repeated() -> tuple[str, int] | None:
    """Return the logger with most handlers of one target, and their number; None without any.

    A target is a file by its name, or a stream. Handlers of the loggers above count where they get
    the same lines. Nothing is imported for it.
    """
    logging = sys.modules.get("logging")
    if logging is None:
        return None
    loggers = {"root": logging.root, **logging.root.manager.loggerDict}
    try:
        found = {name: _repeated(one) for name, one in loggers.items() if hasattr(one, "handlers")}
    except Exception:
        return None  # handlers may be of classes of the script's own, and do as they like
    name = max(found, key=lambda one: found[one], default="")
    return (name, found[name]) if name and found[name] else None


def _repeated(logger: Any) -> int:
    targets: Counter[Any] = Counter()
    while logger is not None:
        targets.update(_target(one) for one in logger.handlers)
        logger = logger.parent if logger.propagate else None
    return max((count for target, count in targets.items() if target is not None), default=0)


def _target(handler: Any) -> Any:
    """Return what a handler writes to; None where that is not known."""
    name = getattr(handler, "baseFilename", None)
    if name is not None:
        return name
    stream = getattr(handler, "stream", None)
    return None if stream is None else id(stream)
