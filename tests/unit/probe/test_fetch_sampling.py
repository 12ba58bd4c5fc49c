"""Batches that are many and quick are measured by a sample; the sums stand for all of them."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.probe import fetches
from hotlap.probe.fetches import Fetches

MS = 1_000_000


class Clock:
    """Wall and CPU time that advance only when told; counts how often batches were measured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 10**9
        self.written: list[dict[str, Any]] = []
        self.measured = 0
        monkeypatch.setattr(fetches, "perf_counter_ns", lambda: self.now)
        monkeypatch.setattr(fetches, "thread_time_ns", lambda: self.now)
        self.fetches = Fetches(self.identity, self.written.append)

    def identity(self, _subject: Any) -> dict[str, Any]:
        self.measured += 1
        return {"loader": 0, "worker": None, "base_seed": None, "dataset": "Points"}

    def batches(self, count: int, took_ns: int, rest_ns: int, samples: int = 8) -> None:
        subject = (self, list(range(samples)))
        for _ in range(count):
            token = self.fetches.fetch_begins(subject)
            self.now += took_ns
            self.fetches.fetch_ended(token, subject)
            self.now += rest_ns

    def total(self, name: str) -> int:
        self.fetches.flush()
        return sum(row[name] for row in self.written)


def test_quick_batches_are_sampled_and_counted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    clock.batches(30_000, took_ns=MS // 10, rest_ns=MS // 5)
    assert clock.measured < 30_000 / 2
    assert clock.total("batches") == 30_000
    assert clock.total("samples") == 8 * 30_000
    assert clock.total("wall_ns") == pytest.approx(30_000 * MS // 10)


def test_slow_batches_are_all_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    clock.batches(1_000, took_ns=10 * MS, rest_ns=MS)
    assert clock.measured == 1_000
    assert clock.total("wall_ns") == 10_000 * MS


@pytest.mark.parametrize(
    ("took_ns", "rest_ns", "share"),
    [
        pytest.param(MS // 10, 10 * MS, 1 / 9, id="little of a step of ten milliseconds"),
        pytest.param(MS // 10, 100 * MS, 1, id="little of a long step"),
        pytest.param(5 * MS, 5 * MS, 1 / 2, id="half of a step"),
        pytest.param(10 * MS, 10 * MS, 1, id="slow themselves"),
    ],
)
def test_how_many_are_measured_follows_what_that_costs(
    monkeypatch: pytest.MonkeyPatch, took_ns: int, rest_ns: int, share: float
) -> None:
    clock = Clock(monkeypatch)
    clock.batches(200, took_ns=took_ns, rest_ns=rest_ns)
    before = clock.measured
    clock.batches(4_000, took_ns=took_ns, rest_ns=rest_ns)
    assert (clock.measured - before) / 4_000 == pytest.approx(share, rel=0.15)
    assert clock.total("batches") == 4_200
    assert clock.total("wall_ns") == pytest.approx(4_200 * took_ns)


def test_rare_slow_batches_keep_their_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    for _ in range(2_000):
        clock.batches(20, took_ns=MS // 10, rest_ns=MS // 5)
        clock.batches(1, took_ns=20 * MS, rest_ns=MS // 5)
    assert clock.measured < 2_000 * 21 / 2
    assert clock.total("wall_ns") == pytest.approx(2_000 * 22 * MS, rel=0.15)


def test_another_loader_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, other = Clock(monkeypatch), object()
    clock.batches(10_000, took_ns=MS // 10, rest_ns=MS // 5)
    before = clock.measured
    subject = (other, [1, 2])
    clock.fetches.fetch_ended(clock.fetches.fetch_begins(subject), subject)
    assert clock.measured == before + 1


class Fetcher:
    """Stands for one epoch's fetcher; the next one usually has its address."""


def test_no_batch_of_a_new_fetcher_is_counted_for_one_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    written: list[dict[str, Any]] = []
    of = {"loader": 0, "worker": None, "base_seed": None, "dataset": "Points"}
    clock.fetches = Fetches(lambda _: dict(of), written.append)
    for loader in range(3_000):
        fetcher = Fetcher()
        of["loader"] = loader % 2
        for _ in range(7):
            token = clock.fetches.fetch_begins((fetcher, [1, 2]))
            clock.now += MS // 10
            clock.fetches.fetch_ended(token, (fetcher, [1, 2]))
        if clock.fetches.to_skip:
            assert clock.fetches.fetcher == id(fetcher)
        del fetcher
        assert (clock.fetches.fetcher, clock.fetches.to_skip) == (0, 0)
    clock.fetches.flush()
    assert sum(row["batches"] for row in written) == 21_000
    for loader in (0, 1):
        mine = [row["batches"] for row in written if row["loader"] == loader]
        assert sum(mine) == 10_500


def test_a_fetcher_that_takes_no_weak_reference_is_measured_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    subject = (object(), [1, 2])
    for _ in range(5_000):
        token = clock.fetches.fetch_begins(subject)
        clock.now += MS // 10
        clock.fetches.fetch_ended(token, subject)
    assert clock.measured == 5_000


def test_a_batch_inside_another_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    subject, inner = (clock, [1]), (object(), [1])
    for _ in range(30_000):
        token = clock.fetches.fetch_begins(subject)
        nested = clock.fetches.fetch_begins(inner)
        clock.now += MS // 10
        clock.fetches.fetch_ended(nested, inner)
        clock.fetches.fetch_ended(token, subject)
    assert clock.measured < 30_000
    assert clock.total("batches") == 30_000
