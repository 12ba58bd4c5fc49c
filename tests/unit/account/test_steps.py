"""Step figures: warm-up told apart, phases that add up, rates, long runs out of windows."""

from __future__ import annotations

import pytest

from hotlap.account import summarise
from hotlap.values.record import DevicePhase, Process, Touch
from hotlap.values.summary import RunSummary, StepSummary
from unit.account.records import MS, SECOND, Trainer, accounts, fetches, loader, plain_step, record


def _step(process: Process) -> StepSummary:
    return summarise(record(process)).trainers[0].step


def _reasons(summary: RunSummary) -> dict[str, str]:
    return dict(summary.not_measured)


def test_warm_up_is_out_of_the_figures_but_in_the_counts() -> None:
    trainer = Trainer().begin()
    for at in range(100):
        trainer.tick(plain_step(10.0 if at < 10 else 1.0))
    step = _step(trainer.farewell().build())
    assert (step.steps, step.warm_up_steps, step.steady_steps) == (100, 10, 90)
    assert step.median_ns == step.p10_ns == step.p90_ns == 10 * MS
    assert step.phases["forward"].ns == 3_500_000
    assert step.phases["forward"].share == pytest.approx(0.35)


def test_shares_of_a_step_sum_to_one() -> None:
    step = _step(Trainer().begin().steps(80, spread=0.2).farewell().build())
    assert sum(part.share or 0.0 for part in step.phases.values()) == pytest.approx(1.0)


def test_carved_time_is_no_part_of_a_step() -> None:
    trainer = Trainer().begin()
    for at in range(60):
        trainer.tick(plain_step(evaluation=SECOND if at % 10 == 9 else 0))
    step = _step(trainer.farewell().build())
    assert step.p90_ns == 10 * MS
    assert step.cpu_share == pytest.approx(0.95)


def test_on_a_cpu_transfer_and_communication_are_missing_with_a_reason() -> None:
    summary = summarise(record(Trainer().begin().steps(20).farewell().build()))
    phases = summary.trainers[0].step.phases
    assert phases["transfer"].ns is None
    assert phases["communication"].ns is None
    reasons = _reasons(summary)
    assert "CPU" in reasons["transfer"]
    assert "one process" in reasons["communication"]
    assert "CUDA" in reasons["device time"]


def test_what_was_measured_is_never_hidden() -> None:
    trainer = Trainer().begin().steps(20, forward=8 * MS, transfer=2 * MS)
    assert _step(trainer.farewell().build()).phases["transfer"].share == pytest.approx(0.2)


def test_data_parallel_communication_lies_inside_backward() -> None:
    trainer = Trainer(rank=0, world_size=2).begin().steps(20).farewell()
    summary = summarise(record(trainer.build()))
    assert summary.trainers[0].step.phases["communication"].ns is None
    assert "backward" in _reasons(summary)["communication"]
    touch = Touch("communication", "all_reduce", None, 20, 5 * MS)
    measured = _step(trainer.build(touches=(touch,)))
    assert measured.phases["communication"].ns == 0


def test_device_time_is_per_sampled_step() -> None:
    trainer = Trainer(device="cuda:0").begin()
    for _ in range(20):
        trainer.tick(plain_step())
    step = _step(trainer.farewell().build(device_phases=(DevicePhase("forward", 5, 20 * MS),)))
    assert step.device["forward"].ns == 4 * MS
    assert step.device["forward"].share == pytest.approx(0.4)


def test_samples_per_second_out_of_what_loaders_gave() -> None:
    trainer = Trainer().begin()
    for _ in range(50):
        trainer.tick(plain_step())
    process = trainer.farewell().build(loaders=(loader(),), fetches=(fetches(),))
    assert _step(process).samples_per_s == pytest.approx(3200)


def test_accumulation_counts_all_batches_of_a_step() -> None:
    trainer = Trainer().begin()
    for _ in range(50):
        trainer.tick(plain_step(), batches=4)
    step = _step(trainer.farewell().build(loaders=(loader(),)))
    assert step.samples_per_s == pytest.approx(4 * 3200)


def test_without_a_loader_there_is_no_rate_but_a_reason() -> None:
    trainer = Trainer().begin()
    for _ in range(20):
        trainer.tick(plain_step(), batches=0)
    summary = summarise(record(trainer.farewell().build()))
    assert summary.trainers[0].step.samples_per_s is None
    assert "DataLoader" in _reasons(summary)["samples per second"]


def test_a_gan_is_counted_in_cycles() -> None:
    trainer = Trainer().begin()
    for _ in range(30):
        for optimizer in (0, 0, 0, 0, 0, 1):
            trainer.tick(accounts(forward=MS), optimizer)
    step = _step(trainer.farewell().build())
    assert step.steps == 30
    assert step.ticks_per_step == 6.0
    assert step.median_ns == 6 * MS


def test_a_long_run_takes_its_spread_from_histograms() -> None:
    trainer = Trainer().begin()
    for at in range(3000):
        trainer.tick(plain_step(20.0 if at < 40 else 1.0 if at < 1500 else 3.0))
    step = _step(trainer.farewell().build(detail=400))
    assert step.steps == 3000
    assert step.warm_up_steps == 40
    assert step.steady_steps == 2960
    assert step.median_ns == pytest.approx(30 * MS, rel=1 / 16)
    assert step.p10_ns == pytest.approx(10 * MS, rel=1 / 16)
    mean = (1460 * 3.5 + 1500 * 10.5) / 2960
    assert step.phases["forward"].ns == pytest.approx(mean * MS, rel=1e-6)


def test_a_long_gan_counts_steps_by_the_closing_optimizer() -> None:
    trainer = Trainer().begin()
    for at in range(2000):
        trainer.tick(accounts(forward=MS), at % 2)
    step = _step(trainer.farewell().build(detail=100))
    assert step.steps == 1000
    assert step.median_ns == 2 * MS


def test_windows_lost_in_a_kill_leave_what_ticks_tell() -> None:
    whole = Trainer().begin().steps(20).build()
    step = _step(Process(**{**vars(whole), "windows": whole.windows[:1]}))
    assert step.steps == 20


def test_no_step_gives_none_everywhere() -> None:
    step = _step(Trainer().farewell(other=MS).build())
    assert step.steps == 0
    assert step.median_ns is None
    assert {part.ns for part in step.phases.values()} == {None}


def test_horizon_is_observed_only_when_the_run_ended_by_itself() -> None:
    process = Trainer().begin().steps(20).farewell().build()
    done = summarise(record(process))
    assert (done.horizon_steps, done.horizon_source) == (20, "observed")
    failed = summarise(record(process, exit_code=3))
    assert (failed.horizon_steps, failed.horizon_source) == (None, "unknown")
    assert "by itself" in _reasons(failed)["horizon"]


def test_touches_are_counted_per_step_of_the_run() -> None:
    trainer = Trainer().begin()
    for _ in range(20):
        trainer.tick(plain_step())
    touches = (Touch("logging", "print", None, 10, MS), Touch("sync", "item", None, 40, 20 * MS))
    item, printed = summarise(record(trainer.build(touches=touches))).trainers[0].touches
    assert (item.kind, item.per_step, item.ns_per_step) == ("item", 2.0, MS)
    assert item.share == pytest.approx(0.1)
    assert printed.per_step == 0.5


def test_a_checkpoint_has_no_share_of_the_steps_that_it_is_taken_out_of() -> None:
    trainer = Trainer().begin().steps(20)
    process = trainer.build(touches=(Touch("checkpoint", "save", None, 2, 30 * MS),))
    (saved,) = summarise(record(process)).trainers[0].touches
    assert saved.ns_per_step == 1.5 * MS
    assert saved.share is None
