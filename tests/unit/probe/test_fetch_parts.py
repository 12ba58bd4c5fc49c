"""CPU time, waiting for a core and being blocked make up the time of a batch, exactly."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.probe import fetches
from hotlap.probe.fetches import Fetches


class Machine:
    """Clocks that advance by what is planted whenever one of them is read, as on a busy machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tells: bool = True) -> None:
        self.wall = self.cpu = self.queue = 10**9
        self.lost_at_each_reading = 0
        self.tells = tells
        monkeypatch.setattr(fetches, "perf_counter_ns", lambda: self.read("wall"))
        monkeypatch.setattr(fetches, "thread_time_ns", lambda: self.read("cpu"))
        monkeypatch.setattr(fetches, "ThreadFiles", lambda: self)

    def read(self, name: str) -> int:
        found: int = getattr(self, name)
        self.wall += self.lost_at_each_reading
        self.queue += self.lost_at_each_reading
        return found

    def passes(self, cpu: int = 0, queue: int = 0, blocked: int = 0) -> None:
        self.cpu += cpu
        self.queue += queue
        self.wall += cpu + queue + blocked

    def runqueue_ns(self) -> int | None:
        return self.read("queue") if self.tells else None

    def io_bytes(self) -> tuple[int, int]:
        self.read("wall")
        return 0, 0


def one_batch(machine: Machine) -> dict[str, Any]:
    """Prepare one batch of known parts, with a collate in it; return what was measured."""
    written: list[dict[str, Any]] = []
    identity = {"loader": 0, "worker": None, "base_seed": None, "dataset": "Points"}
    measured = Fetches(lambda _subject: identity, written.append)
    subject = (machine, [0, 1])
    token = measured.fetch_begins(subject)
    machine.passes(cpu=500, queue=200, blocked=300)
    collating = measured.collate_begins(None)
    machine.passes(cpu=50, queue=20, blocked=30)
    measured.collate_ended(collating, None)
    measured.fetch_ended(token, subject)
    measured.flush()
    (row,) = written
    return row


def test_the_parts_of_a_quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    row = one_batch(Machine(monkeypatch))
    assert (row["wall_ns"], row["cpu_ns"], row["runqueue_ns"], row["blocked_ns"]) == (
        1100,
        550,
        220,
        330,
    )
    assert (row["collate_ns"], row["collate_cpu_ns"], row["collate_runqueue_ns"]) == (100, 50, 20)


@pytest.mark.parametrize("lost", [1, 100, 10_000])
def test_what_is_lost_between_two_clocks_is_in_no_part(
    monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    machine = Machine(monkeypatch)
    machine.lost_at_each_reading = lost
    row = one_batch(machine)
    assert row["wall_ns"] == row["cpu_ns"] + row["runqueue_ns"] + row["blocked_ns"]
    assert row["collate_cpu_ns"] + row["collate_runqueue_ns"] <= row["collate_ns"]
    assert min(row["cpu_ns"], row["runqueue_ns"], row["blocked_ns"]) >= 0


def test_without_the_kernels_word_blocked_holds_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    row = one_batch(Machine(monkeypatch, tells=False))
    assert row["runqueue_ns"] is None
    assert row["blocked_ns"] == row["wall_ns"] - row["cpu_ns"]
