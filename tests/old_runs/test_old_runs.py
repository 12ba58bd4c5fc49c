"""Runs that were recorded long ago stay readable, and go on saying the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hotlap.account.summarise import summarise
from hotlap.runs.reading import read_run
from hotlap.runs.store import read_manifest
from hotlap.values.phase import ACCOUNTS, RUN_PHASES, STEP_PHASES
from hotlap.values.record import Place, Process, Record

HERE = Path(__file__).parent
FORMATS = ["format-1"]


@pytest.fixture(scope="module", params=FORMATS)
def record(request: pytest.FixtureRequest) -> Record:
    return read_run(HERE / request.param)


@pytest.fixture(scope="module")
def trainer(record: Record) -> Process:
    (one,) = record.processes
    return one


def test_every_format_is_here() -> None:
    assert sorted(path.name for path in HERE.glob("format-*")) == FORMATS
    assert [read_manifest(HERE / name)["format"] for name in FORMATS] == [1]


def test_they_are_small() -> None:
    for name in FORMATS:
        assert sum(f.stat().st_size for f in (HERE / name).rglob("*") if f.is_file()) < 60_000


def test_the_run(record: Record) -> None:
    assert record.damage == ()
    assert record.command == ("python", "train.py")
    assert record.hotlap_version == "0.1.0"
    assert record.exit_code == 0
    assert record.exit_ns is not None
    assert record.exit_ns - record.spawn_ns == 3_998_579_672
    assert len(record.samples) == 4
    assert [one["torch"] for one in record.seen] == [True]
    assert record.facts["cores_visible"] == 2


def test_the_training_process(trainer: Process) -> None:
    assert trainer.role == "trainer"
    assert (trainer.rank, trainer.world_size, trainer.device) == (None, None, "cpu")
    assert trainer.torch == "2.13.0+cpu"
    assert trainer.argv == ("python", "train.py")
    assert trainer.faults == ()
    assert [tick.number for tick in trainer.ticks] == list(range(1, 25))
    assert {tick.rule for tick in trainer.ticks} == {"optimizer"}
    assert [tick.number for tick in trainer.ticks if tick.epoch_first] == [1, 9, 17]
    assert [(one.first_tick, one.ticks, one.steps) for one in trainer.windows] == [(1, 24, 24)]


def test_the_accounts(trainer: Process) -> None:
    (window,) = trainer.windows
    in_detail = tuple(map(sum, zip(*(tick.accounts for tick in trainer.ticks), strict=True)))
    assert in_detail == window.accounts
    assert trainer.before_first_step is not None
    assert trainer.after_last_tick is not None
    assert len(window.accounts) == len(trainer.before_first_step) == len(ACCOUNTS)
    named = dict(zip(ACCOUNTS, window.accounts, strict=True))
    before = dict(zip(ACCOUNTS, trainer.before_first_step, strict=True))
    after = dict(zip(ACCOUNTS, trainer.after_last_tick, strict=True))
    assert named["evaluation"] > 0
    assert named["checkpoint"] > 0
    assert named["epoch_edge"] > 0
    assert before["epoch_edge"] == 29_280_537
    assert after["evaluation"] == 42_370_536
    assert after["checkpoint"] == 1_816_222


def test_loaders_and_what_their_workers_did(trainer: Process) -> None:
    roles = {one.ordinal: (one.role, one.workers, one.batch_size) for one in trainer.loaders}
    assert roles == {0: ("training", 2, 8), 1: ("evaluation", 0, 32)}
    assert trainer.loaders[0].place == Place("train.py", 24, "main")
    by_worker = {
        worker: sum(one.batches for one in trainer.fetches if one.worker == worker)
        for worker in (0, 1, None)
    }
    assert by_worker == {0: 12, 1: 12, None: 6}
    for one in trainer.fetches:
        assert one.runqueue_ns is not None
        assert one.wall_ns - one.cpu_ns - one.runqueue_ns - one.blocked_ns <= 0
        assert one.dataset == "Squares"


def test_calls_by_the_users_line(trainer: Process) -> None:
    found = {(one.kind, one.place.line): one.count for one in trainer.touches if one.place}
    assert found["item", 33] == 24
    assert found["save", 39] == 3


def test_what_a_report_makes_of_it(record: Record) -> None:
    summary = summarise(record)
    assert summary.finished
    (trainer,) = summary.trainers
    assert trainer.step.steps == 24
    assert set(summary.phases) == set(RUN_PHASES)
    assert sum(part.ns for part in summary.phases.values() if part.ns) == summary.wall_ns
    for name in ("start_up", "steps", "evaluation", "checkpoint", "epoch_edge", "shut_down"):
        assert summary.phases[name].ns, name
    assert set(trainer.step.phases) == set(STEP_PHASES)
    largest = max(trainer.step.phases.items(), key=lambda item: item[1].ns or 0)
    assert largest[0] == "data_wait"


@pytest.mark.parametrize("name", FORMATS)
def test_with_its_end_cut_off_at_any_place_it_is_still_a_run(name: str, tmp_path: Path) -> None:
    copy = tmp_path / name
    shutil.copytree(HERE / name, copy)
    (path,) = copy.glob("proc/*/self.rec")
    data = path.read_bytes()
    most = 0
    for size in range(0, len(data), 97):
        path.write_bytes(data[:size])
        record = read_run(copy)
        summarise(record)
        steps = sum(len(process.ticks) for process in record.processes)
        assert steps >= most
        most = steps
    assert most == 24
