"""`torchrun` under `hotlap run`: every rank is told apart and agrees with its own log."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hotlap.values.record import Process
from process.style_compare import run_differences, step_differences
from process.style_runs import SCRIPTS, Measured, Result, environ, read_log, run, through_hotlap

pytestmark = pytest.mark.slow

NOISE = 3
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
RANKS = (0, 1)
Runs = dict[str, Future[Any]]


def ddp(folder: Path, *words: str, port: str = "0") -> list[str]:
    """Return the command of a training of two ranks; each logs to ``ddp.json.RANK``."""
    rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"]
    script = [str(SCRIPTS / "ddp.py"), "--record", str(folder / "ddp.json"), *words]
    return [*TORCHRUN, *rendezvous, *script]


def measured(*words: str) -> Measured:
    """Run two ranks through hotlap."""
    folder = Path(tempfile.mkdtemp(prefix="ranks-"))
    return through_hotlap(ddp(folder, *words), folder, environ(OMP_NUM_THREADS="1"))


def alone(*words: str) -> Result:
    """Run two ranks bare."""
    folder = Path(tempfile.mkdtemp(prefix="ranks-"))
    return run(ddp(folder, *words), folder, environ(OMP_NUM_THREADS="1"))


def log_of(result: Result, rank: int) -> dict[str, Any]:
    """Return what one rank clocked."""
    log = read_log(result.folder / f"ddp.json.{rank}")
    assert log is not None, result.stderr.decode(errors="replace")[-3000:]
    return log


def process_of(found: Measured, rank: int) -> Process:
    """Return the one process that trained as this rank."""
    (one,) = [p for p in found.record.processes if p.role == "trainer" and p.rank == rank]
    return one


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """Return the run with a late rank that waits on the host, and a bare one."""
    quick = "getitem=0,forward=0,backward=0,optimizer=0,host=0,straggle=0"
    with ThreadPoolExecutor(1) as pool:
        yield {
            "host": pool.submit(measured),
            "alone": pool.submit(alone, "--plant", quick),
        }


def test_two_trainers_with_their_ranks(runs: Runs) -> None:
    found: Measured = runs["host"].result()
    assert found.result.code == found.record.exit_code == 0
    assert [(one.rank, one.local_rank, one.world_size) for one in found.summary.trainers] == [
        (0, 0, 2),
        (1, 1, 2),
    ]
    assert [one.pid for one in found.summary.trainers] == [
        log_of(found.result, rank)["pid"] for rank in RANKS
    ]
    roles = sorted(process.role for process in found.record.processes)
    assert roles == ["launcher", "trainer", "trainer"]
    assert found.summary.faults == ()


@pytest.mark.parametrize("rank", RANKS)
def test_each_rank_agrees_with_its_own_log(runs: Runs, rank: int) -> None:
    said: list[str] = []
    for attempt in range(NOISE):
        found = measured() if attempt else runs["host"].result()
        log = log_of(found.result, rank)
        (trainer,) = [one for one in found.summary.trainers if one.rank == rank]
        assert trainer.step.steps == log["expected_steps"]
        now = step_differences(log, process_of(found, rank)) + run_differences(log, trainer)
        if not now:
            return
        said += now
    assert said == []


def test_the_early_rank_waits_in_communication(runs: Runs) -> None:
    found: Measured = runs["host"].result()
    waits = [
        sum(touch.ns for touch in process_of(found, rank).touches if touch.kind == "all_reduce")
        for rank in RANKS
    ]
    logged = [
        sum(step["communication"] for step in log_of(found.result, rank)["steps"]) for rank in RANKS
    ]
    assert waits[0] > waits[1]
    assert logged[0] > logged[1]


def test_weights_of_both_ranks_are_those_of_a_bare_run(runs: Runs) -> None:
    ours = [log_of(runs["host"].result().result, rank)["weights_sha256"] for rank in RANKS]
    bare = [log_of(runs["alone"].result(), rank)["weights_sha256"] for rank in RANKS]
    assert ours == bare


# Torch's threads, now and then, abort a rank that ends by sys.exit: no way to compare two runs.
FAILS = """
import os, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    if step == 3:
        os._exit(9) if os.environ["RANK"] == "1" else time.sleep(600)
"""


def test_a_rank_that_fails_gives_the_exit_code_of_torchrun(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text(FAILS)
    rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    command = [*TORCHRUN, *rendezvous, str(script)]
    bare, ours = tmp_path / "bare", tmp_path / "ours"
    bare.mkdir()
    ours.mkdir()
    expected = run(command, bare, environ(OMP_NUM_THREADS="1"))
    found = through_hotlap(command, ours, environ(OMP_NUM_THREADS="1"))
    assert found.result.code == expected.code != 0
    assert found.record.exit_code == expected.code
    assert found.result.stdout == expected.stdout
    assert b"hotlap" not in found.result.stderr.replace(str(tmp_path).encode(), b"")
    says = re.compile(rb"exitcode\s*:\s*(-?\d+)")
    assert says.findall(found.result.stderr) == says.findall(expected.stderr)
    assert {one.rank for one in found.summary.trainers} == {0, 1}
