"""Counters of samples become rates over the steps, of what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.account import summarise
from hotlap.values.record import Process
from hotlap.values.summary import MachineSummary, RunSummary
from unit.account.records import SECOND, Trainer, record, sample


def _process() -> Process:
    trainer = Trainer().begin()
    for _ in range(20):
        trainer.steps(1, forward=SECOND // 2, spread=0.0)
    return trainer.farewell().build()


def _summary(*samples: dict[str, Any]) -> RunSummary:
    return summarise(record(_process(), samples=samples))


def _machine(facts: dict[str, Any], **last: Any) -> MachineSummary:
    first = {name: _zero(value) for name, value in last.items()}
    return _summary(
        sample(3 * SECOND, [0, 0, 0, 0], facts=facts, **first),
        sample(7 * SECOND, [4 * SECOND, SECOND, 0, 2 * SECOND], **last),
    ).machine


def _zero(value: Any) -> Any:
    if isinstance(value, dict):
        return dict.fromkeys(value, 0)
    return [] if isinstance(value, list) else 0


def test_busy_share_is_of_the_allowed_cores() -> None:
    assert _machine({}).cpu_share == pytest.approx(7 / 16)
    machine = _machine({"cpus": [0, 1], "cores_allowed": 2.0, "cores_visible": 4})
    assert machine.cpu_share == pytest.approx(5 / 8)
    assert machine.busiest_core_share == pytest.approx(1.0)
    assert (machine.cores_allowed, machine.cores_visible) == (2.0, 4)


def test_under_a_quota_it_is_our_own_time_over_the_quota() -> None:
    facts = {"cpus": [0, 1, 2, 3], "cores_affinity": 4, "cores_quota": 1.5}
    assert _machine(facts, tree_cpu_ns=3 * SECOND).cpu_share == pytest.approx(0.5)


def test_rates_are_per_second_between_first_and_last_sample() -> None:
    machine = _machine(
        {},
        disk_read_bytes=400,
        net_bytes=800,
        swap_in_bytes=0,
        periods=40,
        throttled_periods=10,
        psi={"io_some_ns": 2 * SECOND},
        tree_rss_bytes=77,
    )
    assert machine.disk_read_bytes_per_s == 100.0
    assert machine.net_bytes_per_s == 200.0
    assert machine.swap_in_bytes_per_s == 0.0
    assert machine.throttled_share == 0.25
    assert machine.pressure == {"io_some": 0.5}
    assert machine.tree_rss_bytes == 77
    assert machine.disk_write_bytes_per_s is None


def test_a_counter_that_falls_is_missing_and_not_negative() -> None:
    machine = _summary(
        sample(3 * SECOND, [0], tree_cpu_ns=9, disk_read_bytes=9),
        sample(7 * SECOND, [1], tree_cpu_ns=1, disk_read_bytes=1),
    ).machine
    assert machine.disk_read_bytes_per_s is None


def test_samples_outside_of_the_steps_do_not_count() -> None:
    machine = _summary(
        sample(SECOND, [0]),
        sample(3 * SECOND, [0]),
        sample(5 * SECOND, [SECOND]),
        sample(60 * SECOND, [50 * SECOND]),
    ).machine
    assert machine.samples == 2
    assert machine.cpu_share == pytest.approx(0.5)


def test_one_sample_gives_no_rate_and_a_reason() -> None:
    summary = _summary(sample(3 * SECOND, [0]))
    assert summary.machine.cpu_share is None
    because = dict(summary.not_measured)["machine while steps ran"]
    assert because == "a rate takes two samples, and 1 fell into the steps"


def test_gpus_are_averaged_and_their_memory_is_the_highest() -> None:
    def gpu(busy: float, used: int) -> list[dict[str, Any]]:
        return [{"index": 0, "busy_share": busy, "memory_used_bytes": used, "throttled_by": ["x"]}]

    facts = {"gpus": [{"index": 0, "name": "H200"}]}
    machine = _summary(
        sample(3 * SECOND, [0], facts=facts) | {"gpus": gpu(0.5, 10)},
        sample(7 * SECOND, [0]) | {"gpus": gpu(1.0, 5)},
    ).machine
    (one,) = machine.gpus
    assert one["name"] == "H200"
    assert one["busy_share"] == 0.75
    assert one["memory_used_bytes"] == 10
    assert one["power_mw"] is None
    assert one["throttled_by"] == ["x"]


def test_no_gpu_is_said_to_be_absent() -> None:
    facts = {"gpus_absent": "no NVIDIA driver: NVML library not found"}
    summary = _summary(sample(3 * SECOND, [0], facts=facts), sample(7 * SECOND, [0]))
    assert dict(summary.not_measured)["GPU utilisation"] == facts["gpus_absent"]


def test_what_other_programs_use_is_told_apart() -> None:
    machine = _summary(
        sample(3 * SECOND, [0, 0]) | {"tree_cpu_ns": 0},
        sample(7 * SECOND, [4 * SECOND, 2 * SECOND]) | {"tree_cpu_ns": 4 * SECOND},
    ).machine
    assert machine.cpu_share == pytest.approx(0.75)
    assert machine.others_cpu_share == pytest.approx(0.25)
