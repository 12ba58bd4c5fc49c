"""Hooks of ours are made to raise, one by one: the training does not notice, the record says so."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from hotlap.sites.catalogue import site_modules
from process.style_compare import phase_totals
from process.style_runs import Measured, bare, quick, with_faults

pytestmark = pytest.mark.slow

PLAIN = ("plain.py", "--epochs", "1")
EVALUATION = ("eval_checkpoint.py",)
WORKERS = ("plain_workers.py",)

SCRIPT: dict[str, tuple[str, ...]] = {
    "backward": PLAIN,
    "batch": PLAIN,
    "collate": PLAIN,
    "collective": ("ddp.py",),
    "compile": ("compiled.py", "--backend", "eager"),
    "exhausted": PLAIN,
    "fetch": PLAIN,
    "loader_created": PLAIN,
    "loader_iter": PLAIN,
    "module_call": PLAIN,
    "module_mode": EVALUATION,
    "optimizer_step": PLAIN,
    "pack": WORKERS,
    "save": EVALUATION,
    "tensor_read": PLAIN,
    "unpack": WORKERS,
    "write": PLAIN,
    "zero_grad": PLAIN,
}
"""For each channel a script that fires it."""

NEEDS_A_DEVICE = {
    "tensor_copy": "not installed on a build of torch that knows no device but the host",
}

ONE_END = {"module_mode": "begin", "exhausted": "begin", "loader_created": "end"}
"""Channels of which only one end is heard."""

IN_EVERY_PROCESS = {"pack", "unpack"}
"""Workers have these hooks too, and each process says so of itself."""

LOST = {
    "backward": {"backward"},
    "batch": {"data_wait"},
    "exhausted": set[str](),
    "loader_iter": set[str](),
    "module_call": {"forward"},
    "optimizer_step": {"optimizer"},
}
"""Phases that cannot be measured any more once the channel is gone."""

FAULTS = [
    f"{channel}.{end}"
    for channel in SCRIPT
    for end in ("begin", "end")
    if ONE_END.get(channel, end) == end
]

each_fault = pytest.mark.parametrize("fault", FAULTS)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Measured]]]:
    """Return the runs of all selected tests by fault, two at a time."""
    chosen = [
        item.callspec.params.get("fault")
        for item in request.session.items
        if hasattr(item, "callspec")
    ]
    with ThreadPoolExecutor(2) as pool:
        yield {
            fault: pool.submit(failing, SCRIPT[fault.split(".")[0]], fault)
            for fault in dict.fromkeys(one for one in chosen if one in FAULTS)
        }


def failing(words: tuple[str, ...], *faults: str) -> Measured:
    """Run a script, planted delays at zero, with faults of ours."""
    return with_faults(quick(*words), faults, Path(tempfile.mkdtemp(prefix="fault-")))


def test_every_channel_of_every_site_is_here() -> None:
    channels = {channel for site in site_modules() for channel in site.CHANNELS}
    assert channels == set(SCRIPT) | set(NEEDS_A_DEVICE)


def assert_training_is_untouched(run: Measured, words: tuple[str, ...]) -> None:
    """Compare with the bare run of the same script."""
    alone = bare(*words)
    assert alone.log is not None
    assert run.result.code == alone.code == 0
    assert run.result.stdout == alone.stdout
    assert run.result.stderr == alone.stderr
    assert run.log["weights_sha256"] == alone.log["weights_sha256"]
    assert run.log["losses"] == alone.log["losses"]


@each_fault
def test_the_training_does_not_notice(fault: str, runs: dict[str, Future[Measured]]) -> None:
    assert_training_is_untouched(runs[fault].result(), SCRIPT[fault.split(".")[0]])


@each_fault
def test_the_record_says_it_once(fault: str, runs: dict[str, Future[Measured]]) -> None:
    run, channel = runs[fault].result(), fault.split(".")[0]
    found = {process.pid: [one.site for one in process.faults] for process in run.record.processes}
    said = [sites for sites in found.values() if sites]
    assert said
    assert all(sites == [channel] for sites in said)
    if channel not in IN_EVERY_PROCESS:
        assert found[run.log["pid"]] == [channel]
        assert len(said) == 1
    assert all("InjectedFault" in one.error for p in run.record.processes for one in p.faults)
    assert any(f": {channel}: InjectedFault" in words for words in run.summary.faults)


@each_fault
def test_other_phases_are_still_measured(fault: str, runs: dict[str, Future[Measured]]) -> None:
    run, channel = runs[fault].result(), fault.split(".")[0]
    totals = phase_totals(run.process)
    for phase in {"data_wait", "forward", "backward", "optimizer"} - LOST.get(channel, set()):
        assert totals[phase] > 0, phase
    for window in run.process.windows:
        assert sum(window.accounts) == window.end_ns - window.begin_ns
    if channel != "optimizer_step":
        assert run.trainer.step.steps == run.log["expected_steps"]


@pytest.mark.parametrize("end", ["begin", "end"])
def test_all_at_once(end: str) -> None:
    run = failing(EVALUATION, *(f"{channel}.{end}" for channel in SCRIPT))
    assert_training_is_untouched(run, EVALUATION)
    (process,) = [one for one in run.record.processes if one.pid == run.log["pid"]]
    sites = [one.site for one in process.faults]
    assert len(sites) == len(set(sites))
    assert sites
