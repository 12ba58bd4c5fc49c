"""``hotlap run`` on a real GPU, against what the script itself measured and did."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import torch

from hotlap.runs.reading import read_run
from hotlap.values.record import Process, Record

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.xdist_group("gpu"),  # one after the other: they time themselves
]

SCRIPT: Final = Path(__file__).with_name("gpu_train.py")
STEPS: Final = 200
FEWEST: Final = 5
"""Samples that a run of so many steps has at least, however far its host runs ahead."""
PATIENCE_S: Final = 100
ENVIRON: Final = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


@dataclass(frozen=True)
class Run:
    """What a script logged, and the record of it when it was measured."""

    log: dict[str, Any]
    record: Record | None

    @property
    def process(self) -> Process:
        assert self.record is not None
        (trainer,) = [one for one in self.record.processes if one.role == "trainer"]
        return trainer

    def touches(self, family: str) -> list[tuple[str, int, int | None]]:
        return [
            (one.kind, one.count, one.size_bytes)
            for one in self.process.touches
            if one.family == family
            and one.place is not None
            and Path(one.place.file).name == SCRIPT.name
        ]


@functools.cache
def folder_of(base: Path, options: tuple[str, ...], measured: bool, turn: int) -> Path:
    name = "_".join(("run" if measured else "bare", *options, str(turn))).replace("--", "")
    folder = base / (name or "plain")
    folder.mkdir()
    hotlap = ["-m", "hotlap", "run", "--quiet", "--", sys.executable] if measured else []
    command = [sys.executable, *hotlap, str(SCRIPT), "--log", str(folder / "log.json"), *options]
    done = subprocess.run(
        command,
        cwd=folder,
        env=ENVIRON,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gpu")


def go(base: Path, *options: str, measured: bool = True, turn: int = 0) -> Run:
    folder = folder_of(base, options, measured, turn)
    log = json.loads((folder / "log.json").read_text())
    if not measured:
        return Run(log, None)
    (path,) = (folder / ".hotlap" / "runs").iterdir()
    return Run(log, read_run(path))


def test_device_times_agree_with_the_scripts_own_events(base: Path) -> None:
    run = go(base)
    told = {one.phase: one.ns / one.steps for one in run.process.device_phases}
    assert run.process.facts["device_clock"] is None
    assert run.process.facts["device_samples"] >= FEWEST
    for phase, logged in run.log["phases"].items():
        assert told[phase] == pytest.approx(logged, rel=0.1, abs=20_000), phase


def test_nothing_of_ours_synchronises(base: Path) -> None:
    """Under torch's own debug mode a synchronisation raises: in the script, or in our hooks."""
    run = go(base, "--strict", "--copy", "pinned")
    assert not run.process.faults
    assert run.process.facts["device_samples"] >= FEWEST


def test_reads_are_counted_as_waiting_for_the_device(base: Path) -> None:
    run = go(base, "--reads", "2")
    assert ("item, cuda", 2 * STEPS, None) in run.touches("sync")
    assert run.log["losses"] == 2 * STEPS


@pytest.mark.parametrize(
    ("copy", "kind"),
    [
        ("pinned", "cpu to cuda, pinned, non_blocking"),
        ("pageable", "cpu to cuda, pageable, blocking"),
        ("beside", "cpu to cuda, pinned, non_blocking"),
    ],
)
def test_copies_by_their_bytes_and_memory(base: Path, copy: str, kind: str) -> None:
    run = go(base, "--copy", copy)
    size = run.log["batch_bytes"]
    # The copy of the first batch, before the steps, is made by another line of the script.
    assert (kind, STEPS, STEPS * size) in run.touches("transfer")
    told = {one.phase for one in run.process.device_phases}
    assert ("transfer" in told) == (copy != "beside")


def test_the_model_is_moved_apart_from_the_batches(base: Path) -> None:
    kinds = {kind for kind, _, _ in go(base).touches("transfer")}
    assert "module, cpu to cuda, pageable, blocking" in kinds


def test_the_weights_are_the_same_bit_for_bit(base: Path) -> None:
    first, second = (go(base, measured=False, turn=turn).log for turn in (0, 1))
    if first["weights"] != second["weights"]:
        pytest.skip("two bare runs differ on this GPU, so there is nothing to compare with")
    assert go(base).log["weights"] == first["weights"]


def test_a_graph_is_captured_as_without_us(base: Path) -> None:
    run = go(base, "--capture")
    assert not run.process.faults
    assert run.process.facts["device_samples"] >= FEWEST


def test_workers_forked_while_cuda_is_in_use(base: Path) -> None:
    run = go(base, "--workers", "2")
    assert run.record is not None
    assert [fault for one in run.record.processes for fault in one.faults] == []


def test_few_steps_are_sampled(base: Path) -> None:
    """The small model's host runs far ahead, so the device is behind at every step."""
    run = go(base, "--size", "64", "--steps", "5000")
    assert not run.process.faults
    assert 1 <= run.process.facts["device_samples"] <= 20 + 5000 / 48


def test_the_gpu_is_seen_by_nvml(base: Path) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    record = go(base).record
    assert record is not None
    gpus = [gpu for sample in record.samples for gpu in sample.get("gpus", ())]
    assert gpus
    assert max(gpu["memory_used_bytes"] or 0 for gpu in gpus) > 0
