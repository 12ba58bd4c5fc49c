"""Which global generators change while a data set's samples are fetched.

What a data set draws depends on the worker that fetches, so a change of workers gives other
samples where it draws, and the same ones where it does not.
"""

from __future__ import annotations

import os
import random
import sys
from typing import Any, Final

from hotlap.probe.recorder import Recorder
from hotlap.runs import frames
from hotlap.sites.hub import Hub

_FETCHES: Final = 8
"""Fetches that are looked at, by data set and process. Cost: 50 us each."""


class Draws:
    """Looks at fetches, in the training process and in its loaders' workers."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._start_over()

    def _start_over(self) -> None:
        self._pid = os.getpid()
        self._seen: dict[str, int] = {}
        self._drawn: dict[str, set[str]] = {}
        self._written: dict[str, list[str]] = {}

    def attach(self, hub: Hub) -> None:
        """Subscribe to fetches."""
        hub.subscribe("fetch", self._begins, self._ended)
        # A worker that fetches one batch only has its file when it ends.
        self._recorder.beside_fetches = self._write

    def _begins(self, subject: Any) -> Any:
        if self._pid != os.getpid():
            self._start_over()
        dataset = type(subject[0].dataset).__name__
        if self._seen.get(dataset, 0) >= _FETCHES:
            return 0
        self._seen[dataset] = self._seen.get(dataset, 0) + 1
        return dataset, _states()

    def _ended(self, token: Any, _subject: Any) -> None:
        dataset, before = token
        drawn = self._drawn.setdefault(dataset, set())
        for name, state in _states().items():
            if name not in before or not _same(state, before[name]):
                drawn.add(name)
        self._write()

    def _write(self) -> None:
        found = {dataset: sorted(names) for dataset, names in self._drawn.items()}
        is_worker = sys.modules["torch"].utils.data.get_worker_info() is not None
        if found == self._written or (is_worker and self._recorder.worker_file is None):
            return
        self._written = found
        self._recorder.add(frames.encode_json("draw", found))


def _states() -> dict[str, Any]:
    found = {"torch": sys.modules["torch"].get_rng_state(), "random": random.getstate()}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and hasattr(numpy, "get_state"):
        name, keys, *rest = numpy.get_state()
        found["numpy"] = (name, keys.tobytes(), *rest)
    return found


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return bool(one == other)
    return bool(sys.modules["torch"].equal(one, other))
