"""Builders of records by hand: a process is told tick by tick what it spent its time on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hotlap.stats.histogram import bucket
from hotlap.values.phase import ACCOUNTS, STEP_PHASES
from hotlap.values.record import Fetches, Loader, Place, Process, Record, Tick, Window

MS = 1_000_000
SECOND = 1_000_000_000


def accounts(**ns: int) -> tuple[int, ...]:
    """Return accounts with the named ones set and zero elsewhere."""
    assert not set(ns) - set(ACCOUNTS), ns
    return tuple(ns.get(name, 0) for name in ACCOUNTS)


def plain_step(scale: float = 1.0, **more: int) -> tuple[int, ...]:
    """Return the accounts of a step of 10 ms times the scale."""
    parts = {"data_wait": 0.5, "forward": 3.5, "backward": 5.0, "optimizer": 0.8, "other": 0.2}
    ns = {name: int(ms * MS * scale) for name, ms in parts.items()}
    return accounts(**{name: ns.get(name, 0) + more.get(name, 0) for name in {*ns, *more}})


class Trainer:
    """A trainer under construction; times follow from the accounts that it is given."""

    def __init__(self, start_ns: int = 2 * SECOND, **fields: Any) -> None:
        self.fields: dict[str, Any] = {
            "host": "node1",
            "pid": 100,
            "rank": None,
            "local_rank": None,
            "world_size": None,
            "role": "trainer",
            "argv": ("train.py",),
            "python": "3.11.9",
            "torch": "2.13.0",
            "device": "cpu",
            **fields,
        }
        self.start_ns = start_ns
        self.now = start_ns
        self.first_step_ns: int | None = None
        self.before: tuple[int, ...] | None = None
        self.after: tuple[int, ...] | None = None
        self.end_ns: int | None = None
        self.ticks: list[Tick] = []

    def begin(self, **spent: int) -> Trainer:
        """Let the first step begin after the accounts given."""
        self.before = accounts(**spent)
        self.now += sum(self.before)
        self.first_step_ns = self.now
        return self

    def tick(
        self, spent: tuple[int, ...], optimizer: int = 0, rule: str = "optimizer", **more: Any
    ) -> Trainer:
        """Let one tick end after the accounts given."""
        self.now += sum(spent)
        self.ticks.append(
            Tick(
                number=len(self.ticks) + 1,
                end_ns=self.now,
                rule=rule,
                optimizer=optimizer if rule == "optimizer" else -1,
                accounts=spent,
                batches=more.get("batches", 1),
                forwards=1,
                backwards=1,
                cpu_ns=more.get("cpu_ns", int(sum(spent) * 0.95)),
                epoch_first=more.get("epoch_first", False),
            )
        )
        return self

    def steps(self, count: int, seed: int = 1, spread: float = 0.02, **parts: int) -> Trainer:
        """Make noisy steps, each of the parts given (nanoseconds) or plain ones."""
        generator = random.Random(seed)
        for _ in range(count):
            scale = max(0.3, generator.gauss(1.0, spread))
            spent = {name: int(ns * scale) for name, ns in parts.items()}
            self.tick(accounts(**spent) if parts else plain_step(scale))
        return self

    def farewell(self, **spent: int) -> Trainer:
        """Let the process end in good order after the accounts given."""
        self.after = accounts(**spent)
        self.now += sum(self.after)
        self.end_ns = self.now
        return self

    def build(self, window: int = 16, detail: int | None = None, **fields: Any) -> Process:
        """Return the process, with windows of so many ticks and so many ticks in detail."""
        return Process(
            start_ns=self.start_ns,
            first_step_ns=self.first_step_ns,
            end_ns=self.end_ns,
            before_first_step=self.before,
            after_last_tick=self.after,
            ticks=tuple(self.ticks[:detail]),
            windows=tuple(windows(self.ticks, window, self.first_step_ns or 0)),
            **{**self.fields, **fields},
        )


def windows(ticks: Sequence[Tick], size: int, begin_ns: int) -> list[Window]:
    """Sum ticks into windows, each tick being a step."""
    found = []
    for at in range(0, len(ticks), size):
        part = ticks[at : at + size]
        by_optimizer: dict[int, int] = {}
        histogram: dict[int, int] = {}
        for tick in part:
            by_optimizer[tick.optimizer] = by_optimizer.get(tick.optimizer, 0) + 1
            key = bucket(sum(tick.accounts[: len(STEP_PHASES)]))
            histogram[key] = histogram.get(key, 0) + 1
        found.append(
            Window(
                first_tick=part[0].number,
                ticks=len(part),
                steps=len(part),
                begin_ns=begin_ns,
                end_ns=part[-1].end_ns,
                rule=part[0].rule,
                by_optimizer=by_optimizer,
                histogram=histogram,
                accounts=tuple(map(sum, zip(*(tick.accounts for tick in part), strict=True))),
                batches=sum(tick.batches for tick in part),
                forwards=len(part),
                backwards=len(part),
                cpu_ns=sum(tick.cpu_ns or 0 for tick in part),
            )
        )
        begin_ns = part[-1].end_ns
    return found


def record(*processes: Process, exit_ns: int | None = None, **fields: Any) -> Record:
    """Return a record that begins at 1 s and ends 0.25 s after its last process."""
    ends = [process.end_ns for process in processes if process.end_ns is not None]
    end = exit_ns if exit_ns is not None else max(ends, default=60 * SECOND) + SECOND // 4
    given: dict[str, Any] = {
        "id": "20260102-030405-ab12",
        "path": "/runs/20260102-030405-ab12",
        "command": ("python", "train.py"),
        "cwd": "/home/user/project",
        "host": "node1",
        "hotlap_version": "0.1.0",
        "started": "2026-01-02T03:04:05+00:00",
        "spawn_ns": SECOND,
        "exit_ns": end,
        "exit_code": 0,
        **fields,
    }
    return Record(processes=processes, **given)


def going(one: Record) -> Record:
    """Return the record of a run whose end has not been written."""
    return replace(one, exit_ns=None, exit_code=None)


def loader(**fields: Any) -> Loader:
    """Return a training loader with two workers."""
    given: dict[str, Any] = {
        "ordinal": 0,
        "dataset": "Photos",
        "place": Place("train.py", 31, "main"),
        "batch_size": 32,
        "workers": 2,
        "length": 100,
        "iterable": False,
        "pin_memory": False,
        "prefetch": 2,
        "persistent": False,
        "role": "training",
        **fields,
    }
    return Loader(**given)


def fetches(**fields: Any) -> Fetches:
    """Return 10 batches of 32: wall 100 = cpu 70 + runqueue 20 + blocked 10, collate 10 in it."""
    given: dict[str, Any] = {
        "loader": 0,
        "worker": 0,
        "batches": 10,
        "samples": 320,
        "wall_ns": 100 * MS,
        "cpu_ns": 70 * MS,
        "runqueue_ns": 20 * MS,
        "blocked_ns": 10 * MS,
        "collate_ns": 10 * MS,
        "collate_cpu_ns": 6 * MS,
        "collate_runqueue_ns": 3 * MS,
        "ipc_ns": 5 * MS,
        "asked_bytes": 1000,
        "disk_bytes": 400,
        "slowest_ns": 15 * MS,
        "begin_ns": 3 * SECOND,
        "end_ns": 4 * SECOND,
        **fields,
    }
    return Fetches(**given)


def sample(at_ns: int, busy: Sequence[int], **fields: Any) -> dict[str, Any]:
    """Return a machine sample with the busy time of each core so far."""
    return {"at_ns": at_ns, "cores_busy_ns": list(busy), "gpus": [], **fields}
