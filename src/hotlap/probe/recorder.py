"""One process's recorder: its role, its watchers, its file.

A process that imported torch gets one. It becomes a *trainer* at its first tick, a *worker* when
it prepares batches for a loader of its parent, and says nothing more than hello otherwise.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from hotlap.probe import compiled
from hotlap.probe.device import DeviceClock
from hotlap.probe.fetches import Fetches
from hotlap.probe.hello import hello, process_start_ns, torch_facts, training_facts
from hotlap.probe.journal import Journal
from hotlap.probe.ledger import Ledger
from hotlap.probe.loaders import Loaders
from hotlap.probe.models import Models
from hotlap.probe.optimizers import Optimizers
from hotlap.probe.places import Places
from hotlap.probe.timeline import Timeline
from hotlap.probe.touches import Touches
from hotlap.runs import frames, layout
from hotlap.runs.recording import Recording
from hotlap.sites.hub import Hub

_WORKER_LIMIT = 16 << 20
_SINGLES_LIMIT = 64 << 10


class Recorder:
    """Subscribes to all sites of one process and writes what they tell.

    run: the run directory. start_dir: what source files are shown relative to.
    ``after_fork`` must be called in a forked child; ``close`` at the end.
    """

    def __init__(self, run: Path, start_dir: str, start_ns: int | None = None) -> None:
        self.run = run
        self.places = Places(start_dir)
        self._closed = False
        self._worker: Recording | None = None
        self._hooks: dict[str, Any] = {}
        self.beside_fetches: Callable[[], None] | None = None
        """Called in a loader's worker each time that its work is written."""
        self._settle_in(process_start_ns() if start_ns is None else start_ns)
        self.ledger = Ledger()
        self.journal = Journal(self.recording)
        self.timeline = Timeline(self.ledger, self.journal)
        self.loaders = Loaders(self.ledger, self.timeline, self.journal, self.places)
        self.touches = Touches(self.ledger, self.journal, self.places)
        self.fetches = Fetches(self._identity, self._write_fetches)
        self.device = DeviceClock(self.ledger, self.timeline, self.journal, sys.modules["torch"])
        self._write_cumulative()

    def _settle_in(self, start_ns: int) -> None:
        """Take a file of this process's own; nothing is written before the first flush."""
        self.pid = os.getpid()
        self.hello = hello(start_ns)
        folder = layout.process_folder(
            self.run, self.hello["host"], self.hello["rank"], self.pid, start_ns
        )
        self.recording = Recording(folder / layout.PROCESS_FILE, "process")
        self.recording.add(frames.encode_json("helo", self.hello))

    def _write_cumulative(self) -> None:
        self.recording.add(frames.encode_json("fact", torch_facts(sys.modules["torch"])))
        self.journal.status.extend((self._write_facts, self._write_counts))

    # -- sites ---------------------------------------------------------------------------------

    def attach(self, hub: Hub, withheld: str | None = None) -> None:
        """Subscribe all watchers; called once, when torch has been imported.

        withheld: why compiled hooks do not stand in for the sites' wrappers; None: they may.
        """
        optimizers = Optimizers(self.ledger, self.timeline)
        self.loaders.attach(hub)
        Models(self.ledger, self.timeline).attach(hub)
        optimizers.attach(hub)
        self.touches.attach(hub)
        self.device.attach(hub)  # after the ledger's watchers, whose accounts it reads
        self.fetches.attach(hub)
        self._hooks = compiled.facts(withheld)
        if withheld is None:
            compiled.offer(hub, self, optimizers)
        self.recording.add(frames.encode_json("fact", self._hooks))

    def fault(self, site: str, error: BaseException) -> None:
        """Write down a failure of ours; the spans it may have left open are closed."""
        where = traceback.extract_tb(error.__traceback__)
        last = f" ({Path(where[-1].filename).name}:{where[-1].lineno})" if where else ""
        text = f"{type(error).__name__}: {error}{last}"
        at = self.ledger.settle()
        if self.ledger.mine():
            # Spans that were open close with the hook that failed: the rest is `other`.
            self.ledger.abandon()
        self.recording.add(
            frames.encode_json("falt", {"site": site, "error": text[:500], "at_ns": at})
        )
        self.recording.flush()

    # -- roles ---------------------------------------------------------------------------------

    def _identity(self, subject: tuple[Any, ...]) -> dict[str, Any] | None:
        """Tell whose batch is being made: a worker's, or the training thread's own."""
        info = sys.modules["torch"].utils.data.get_worker_info()
        dataset = type(subject[0].dataset).__name__
        if info is not None:
            if self._worker is None:
                self._become_worker(dataset, info.id)
            return {
                "loader": None,
                "worker": info.id,
                "base_seed": info.seed - info.id,
                "dataset": dataset,
            }
        current = self.loaders.current
        if current is None or not self.ledger.mine():
            return None
        return {
            "loader": current.ordinal,
            "worker": None,
            "base_seed": None,
            "dataset": dataset,
        }

    def _become_worker(self, dataset: str, worker: int) -> None:
        parent = multiprocessing.parent_process()
        pid = parent.pid if parent is not None and parent.pid else os.getppid()
        folders = layout.folders_of_pid(self.run, self.hello["host"], pid)
        if not folders:
            raise LookupError(f"process {pid}, whose worker this is, has left no folder")
        path = layout.worker_file(folders[-1], dataset, worker)
        self._worker = Recording(path, "worker", _WORKER_LIMIT)
        if path.exists() and path.stat().st_size > _SINGLES_LIMIT:
            self.fetches.continues()
        self.fetches.packs = True
        # Forked children run no atexit handlers, but multiprocessing's finalizers.
        multiprocessing.util.Finalize(None, self._close_worker, exitpriority=-100)

    def _write_fetches(self, summed: dict[str, Any]) -> None:
        frame = frames.encode_json("ftch", summed)
        if self._worker is not None:
            self._worker.add(frame)
            self._worker.flush()
            if self.beside_fetches is not None:
                self.beside_fetches()
        else:
            self.recording.add(frame)

    def _close_worker(self) -> None:
        self.fetches.flush()

    @property
    def worker_file(self) -> Path | None:
        """The file of this process as a loader's worker; None while it is none."""
        return None if self._worker is None else self._worker.path

    def add(self, frame: bytes) -> None:
        """Write a frame into the file of this process: a worker's, or a training process's."""
        recording = self.recording if self._worker is None else self._worker
        recording.add(frame)
        recording.flush()

    # -- cumulative records ----------------------------------------------------------------------

    def _write_facts(self) -> None:
        if self.timeline.ticks:
            facts = training_facts(sys.modules["torch"])
            self.recording.add(frames.encode_json("fact", facts))
            if self._forked and not self._closing:
                self._closing = True
                # Forked children run no atexit handlers, but multiprocessing's finalizers.
                multiprocessing.util.Finalize(None, self.close, exitpriority=-100)

    def _write_counts(self) -> None:
        _, forwards, backwards = self.timeline.totals
        counts = {
            "forwards": forwards,
            "backwards": backwards,
            "ticks": self.timeline.ticks,
            "unpack_ns": self.fetches.unpacked_ns,
        }
        self.recording.add(frames.encode_json("stat", counts))

    # -- life ------------------------------------------------------------------------------------

    def announce(self) -> None:
        """Write hello to the disk, unless this is a child that may be one of many workers."""
        if multiprocessing.parent_process() is None:
            self.recording.flush()

    def after_fork(self) -> None:
        """In a forked child: forget the parent's accounts; the sites' subscriptions stay.

        The watchers are renewed in place, since the sites hold their bound methods.
        """
        self._forked = True
        self._closing = self._closed = False
        self._worker = None
        self._settle_in(perf_counter_ns())
        _renew(self.ledger)
        _renew(self.journal, self.recording)
        _renew(self.timeline, self.ledger, self.journal)
        _renew(self.touches, self.ledger, self.journal, self.places)
        _renew(self.fetches, self._identity, self._write_fetches)
        self.device.after_fork()
        self.loaders.after_fork()
        self._write_cumulative()
        self.recording.add(frames.encode_json("fact", self._hooks))

    _forked = False
    _closing = False

    def close(self) -> None:
        """Write what is left and the farewell; further calls do nothing."""
        if self._closed or os.getpid() != self.pid:
            return
        self._closed = True
        if self._worker is not None:
            self._close_worker()
        elif self.timeline.ticks or not (self._forked or multiprocessing.parent_process()):
            self.fetches.flush()
            after = self.timeline.since_last_tick()
            self.journal.close(perf_counter_ns(), after)


def _renew(watcher: Any, *arguments: Any) -> None:
    type(watcher).__init__(watcher, *arguments)
