"""Hooks of ours are made to raise, one by one: the training does not notice, the record says so.

Every end of every channel fails in one process, which trains under one session after the other;
some fail in a process of their own too, which proves exit code and standard streams.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hotlap.account.summarise import summarise
from hotlap.runs.reading import read_run
from hotlap.sites.catalogue import site_modules
from process.style_compare import phase_totals
from process.style_runs import PATIENCE_S, bare, environ, quick, with_faults

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("faults")]

DRIVER = Path(__file__).with_name("fault_driver.py")

CHANNELS = (
    "backward",
    "batch",
    "collate",
    "collective",
    "compile",
    "exhausted",
    "fetch",
    "loader_created",
    "loader_iter",
    "module_call",
    "module_mode",
    "optimizer_call",
    "optimizer_step",
    "pack",
    "save",
    "tensor_read",
    "unpack",
    "write",
    "zero_grad",
)

NEEDS_A_DEVICE = {
    "tensor_copy": "not installed on a build of torch that knows no device but the host",
}

NEEDS_A_TRIAL = {"sample": "nobody listens in a plain run"}

ONE_END = {"module_mode": "begin", "exhausted": "begin", "loader_created": "end"}
"""Channels of which only one end is heard."""

IN_WORKERS = {"collate", "fetch", "pack", "unpack"}
"""Workers fire these too, and each process says so of itself."""

LOST = {
    "backward": {"backward"},
    "batch": {"data_wait"},
    "exhausted": set[str](),
    "loader_iter": set[str](),
    "module_call": {"forward"},
    "optimizer_call": {"optimizer", "other"},
    "optimizer_step": {"optimizer"},
}
"""Phases that cannot be measured any more once the channel is gone."""

FAULTS = [
    f"{channel}.{end}"
    for channel in CHANNELS
    for end in ("begin", "end")
    if ONE_END.get(channel, end) == end
]

each_fault = pytest.mark.parametrize("fault", FAULTS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with what came of every training of the driver."""
    folder = tmp_path_factory.mktemp("faults")
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(folder), *FAULTS],
        env=environ(),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def said(folder: Path, name: str) -> dict[str, Any]:
    """Return results and output of one training."""
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return found


def test_every_channel_of_every_site_is_here() -> None:
    channels = {channel for site in site_modules() for channel in site.CHANNELS}
    assert channels == {*CHANNELS, *NEEDS_A_DEVICE, *NEEDS_A_TRIAL}


def test_without_a_fault_there_is_none(trained: Path) -> None:
    alone, ours = said(trained, "alone"), said(trained, "none")
    assert ours == alone
    assert len(alone["losses"]) == 16
    assert alone["stdout"].count("\n") == 18
    assert alone["stderr"].count("\n") == 4
    summary = summarise(read_run(trained / "none"))
    assert summary.faults == ()
    assert [one.step.steps for one in summary.trainers] == [16]


@each_fault
def test_the_training_does_not_notice(fault: str, trained: Path) -> None:
    assert said(trained, fault) == said(trained, "alone")


@each_fault
def test_the_record_says_it_once(fault: str, trained: Path) -> None:
    record, channel = read_run(trained / fault), fault.split(".")[0]
    found = [[one.site for one in process.faults] for process in record.processes]
    at = [sites for sites in found if sites]
    assert at
    assert all(sites == [channel] for sites in at)
    (trainer,) = [one for one in record.processes if one.windows]
    if channel not in IN_WORKERS:
        assert len(at) == 1
    if channel != "pack":
        assert [one.site for one in trainer.faults] == [channel]
    assert all("InjectedFault" in one.error for p in record.processes for one in p.faults)
    assert any(f": {channel}: InjectedFault" in words for words in summarise(record).faults)


@each_fault
def test_other_phases_are_still_measured(fault: str, trained: Path) -> None:
    record, channel = read_run(trained / fault), fault.split(".")[0]
    (process,) = [one for one in record.processes if one.windows]
    totals = phase_totals(process)
    for phase in {"data_wait", "forward", "backward", "optimizer"} - LOST.get(channel, set()):
        assert totals[phase] > 0, phase
    for window in process.windows:
        assert sum(window.accounts) == window.end_ns - window.begin_ns
    if channel != "optimizer_step":
        (trainer,) = summarise(record).trainers
        assert trainer.step.steps == len(said(trained, fault)["losses"])


# -- processes of their own ------------------------------------------------------------------------

EVALUATION = ("eval_checkpoint.py",)
WORKERS = ("plain_workers.py",)
EVERYTHING = {end: tuple(f"{channel}.{end}" for channel in CHANNELS) for end in ("begin", "end")}


@pytest.mark.parametrize(
    ("words", "faults"),
    [
        (EVALUATION, ("write.begin",)),
        (EVALUATION, ("backward.end",)),
        (WORKERS, ("unpack.begin",)),
        (WORKERS, EVERYTHING["begin"]),
        (EVALUATION, EVERYTHING["end"]),
    ],
    ids=["write.begin", "backward.end", "unpack.begin", "all_begin", "all_end"],
)
def test_a_process_ends_as_it_would_alone(words: tuple[str, ...], faults: tuple[str, ...]) -> None:
    run = with_faults(quick(*words), faults, Path(tempfile.mkdtemp(prefix="fault-")))
    alone = bare(*words)
    assert alone.log is not None
    assert run.result.code == alone.code == 0
    assert run.result.stdout == alone.stdout
    assert run.result.stderr == alone.stderr
    assert run.log["weights_sha256"] == alone.log["weights_sha256"]
    assert run.log["losses"] == alone.log["losses"]
    (process,) = [one for one in run.record.processes if one.pid == run.log["pid"]]
    sites = [one.site for one in process.faults]
    assert sites
    assert len(sites) == len(set(sites))
    assert set(sites) <= {fault.split(".")[0] for fault in faults}
    if len(faults) == 1:
        assert run.trainer.step.steps == run.log["expected_steps"]
