"""What the time of preparing a batch is: the largest part of the split is the one that the script
made large, and no part claims more than the workers' own clocks have seen.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotlap.values.summary import LoaderSummary
from process.style_runs import SCRIPTS, Measured, measured, one_worker, python, through_hotlap

pytestmark = pytest.mark.slow

VIEW_SHARE = 0.15
"""What a part may differ from the workers' own view, as a share of preparing a batch."""


@dataclass(frozen=True)
class Split:
    """A script of `scripts/split`, and the part that it makes the largest."""

    largest: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return "_".join(word.removesuffix(".py").strip("-") for word in self.words)


def split(largest: str, script: str, *words: str) -> Split:
    """Return a case with as few epochs as the part needs."""
    return Split(largest, (f"split/{script}", "--epochs", "1", *words))


SPLITS = (
    split("cpu", "slow_cpu.py"),
    split("cpu", "slow_cpu.py", "--workers", "0"),
    split("blocked", "blocked.py"),
    split("blocked", "blocked.py", "--how", "lock"),
    split("blocked", "blocked.py", "--workers", "0"),
    split("blocked", "remote_storage.py"),
    split("runqueue", "scarce_cores.py"),
    split("collate", "slow_collate.py"),
    split("collate", "slow_collate.py", "--kind", "sleep", "--context", "spawn"),
    split("collate", "slow_collate.py", "--workers", "0"),
    split("ipc", "big_handover.py"),
    split("ipc", "big_handover.py", "--context", "spawn"),
)


def split_cases(*but: str) -> pytest.MarkDecorator:
    """Return the mark of a test for every case, but those with these largest parts."""
    chosen = [one for one in SPLITS if one.largest not in but]
    marked = [pytest.param(one, marks=one_worker(*one.words), id=str(one)) for one in chosen]
    return pytest.mark.parametrize("case", marked)


each_split = split_cases()


@functools.cache
def run_of(case: Split) -> Measured:
    """Return the run of a case, with a folder for the workers' own view; one per worker."""
    folder = Path(tempfile.mkdtemp(prefix="split-"))
    command = python((*case.words, "--view", str(folder / "view")), folder)
    return through_hotlap(command, folder)


def loader_of(found: Measured) -> LoaderSummary:
    """Return the loader that trained."""
    (loader,) = [one for one in found.trainer.loaders if one.role == "training"]
    return loader


def view_of(folder: Path) -> list[dict[str, Any]]:
    """Return what the workers clocked themselves, one entry per batch."""
    lines = [path.read_text().splitlines() for path in sorted((folder / "view").glob("*.jsonl"))]
    return [json.loads(line) for worker in lines for line in worker]


def largest_of(loader: LoaderSummary, but: str = "") -> str:
    """Return the largest part of a loader's split, one left out if need be."""
    parts = {name: part.ns or 0 for name, part in loader.split.items() if name != but}
    return max(parts, key=parts.__getitem__)


def queue_of(view: list[dict[str, Any]]) -> int:
    """Return how long the workers waited for a core while they fetched items."""
    return sum(line["items"]["runqueue_ns"] or 0 for line in view)


def planted_of(view: list[dict[str, Any]], part: str) -> int:
    """Return how much of a part the workers saw; none of handing over, which they do not see."""
    if part == "collate":
        return sum(line["collate"]["wall_ns"] for line in view)
    return sum(line["items"][f"{part}_ns"] or 0 for line in view) if part != "ipc" else 0


@each_split
def test_the_largest_part_is_the_true_one(case: Split) -> None:
    found = run_of(case)
    assert found.result.code == 0, found.result.stderr.decode()[-2000:]
    loader = loader_of(found)
    if largest_of(loader) != "runqueue" or case.largest == "runqueue":
        assert largest_of(loader) == case.largest, loader.split
    else:
        # Others want the cores too: then waiting is the true answer, as the workers' own clocks
        # must say, and what is planted comes next.
        view = view_of(found.result.folder)
        waited, others = queue_of(view), planted_of(view, case.largest)
        assert waited > 0.8 * others, loader.split
        assert largest_of(loader, but="runqueue") == case.largest, loader.split
    assert loader.batches == found.log["batches"]
    assert loader.workers == (0 if "0" in case.words else 4 if "scarce" in str(case) else 2)
    assert found.summary.faults == ()


# Where a thread of the worker pickles megabytes it holds the interpreter between our clock and the
# script's: neither sees what the other does.
@split_cases("ipc")
def test_every_part_is_what_the_workers_clocked(case: Split) -> None:
    found = run_of(case)
    loader, view = loader_of(found), view_of(found.result.folder)
    assert len(view) == loader.batches
    prepared = sum(line["batch"]["wall_ns"] for line in view) / len(view)
    expected = {
        "cpu": sum(line["items"]["cpu_ns"] for line in view) / len(view),
        "collate": sum(line["collate"]["wall_ns"] for line in view) / len(view),
    }
    if view[0]["items"]["runqueue_ns"] is not None:
        for part in ("runqueue", "blocked"):
            expected[part] = sum(line["items"][f"{part}_ns"] for line in view) / len(view)
    for part, ns in expected.items():
        # The clocks around a batch see a little more than those inside of it.
        assert loader.split[part].ns == pytest.approx(ns, abs=VIEW_SHARE * prepared + 1e6), part


@each_split
def test_parts_make_up_the_time_of_a_batch(case: Split) -> None:
    loader = loader_of(run_of(case))
    known = [part.ns for part in loader.split.values() if part.ns is not None]
    assert loader.batch_ns is not None
    assert sum(known) == pytest.approx(loader.batch_ns, rel=0.02, abs=50_000)
    assert (loader.split["ipc"].ns is None) == (loader.workers == 0)


HOG = "while True: pass"


def test_a_core_shared_with_others_at_no_workers() -> None:
    """The training thread itself waits for its core while three others want it."""
    core = sorted(os.sched_getaffinity(0))[-1]
    with contextlib.ExitStack() as ended:
        for _ in range(3):
            hog = subprocess.Popen([sys.executable, "-c", HOG])
            ended.callback(hog.wait)
            ended.callback(hog.kill)
            os.sched_setaffinity(hog.pid, {core})
        words = ("split/scarce_cores.py", "--workers", "0", "--epochs", "1", "--plant", "cpu=4")
        found = measured(*words)
    loader = loader_of(found)
    assert largest_of(loader) == "runqueue", loader.split
    assert loader.split["cpu"].ns == pytest.approx(found.log["workers"]["cpu_ns"], rel=0.25)


# -- storage -------------------------------------------------------------------------------------

FILES, MIB = 32, 1
STORAGE = ("split/slow_storage.py", "--files", str(FILES), "--mib", str(MIB), "--epochs", "2")
SLOW_BYTES_PER_S = 20 << 20


@pytest.fixture(scope="module")
def throttled() -> Iterator[Path]:
    """Make a folder on a disk that lets this process's children read 20 MiB a second."""
    if os.geteuid() != 0:
        pytest.skip("throttling a disk needs the superuser")
    folder = Path(tempfile.mkdtemp(prefix="slow-disk-"))
    device = os.stat(folder).st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    group = Path("/sys/fs/cgroup/blkio") / folder.name
    limit = group / "blkio.throttle.read_bps_device"
    if not block.exists():
        pytest.skip("the folder for temporary files lies on no disk")
    try:
        group.mkdir()
        limit.write_text(f"{os.major(device)}:{os.minor(device)} {SLOW_BYTES_PER_S}")
    except OSError as error:
        pytest.skip(f"this kernel lets us throttle no disk: {error}")
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / STORAGE[0]), *STORAGE[1:], "--make", str(folder)],
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    yield folder
    group.rmdir()


def in_group(group: Path, words: tuple[str, ...]) -> Measured:
    """Run a script measured, its processes in a control group."""
    folder = Path(tempfile.mkdtemp(prefix="split-"))
    script = python((*words, "--view", str(folder / "view")), folder)
    enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    return through_hotlap([*enter, *script], folder)


@pytest.mark.root
@pytest.mark.parametrize("workers", [0, 2])
def test_a_slow_disk_is_blocked_time(throttled: Path, workers: int) -> None:
    group = Path("/sys/fs/cgroup/blkio") / throttled.name
    found = in_group(group, (*STORAGE, "--source", str(throttled), "--workers", str(workers)))
    loader, view = loader_of(found), view_of(found.result.folder)
    slow = sum(line["items"]["wall_ns"] for line in view)
    total = 2 * FILES * (MIB << 20)
    if slow < 0.5 * total / SLOW_BYTES_PER_S * 1e9:
        pytest.skip("the limit has no effect on this kernel")
    assert largest_of(loader) == "blocked", loader.split
    assert loader.asked_bytes is not None
    assert loader.disk_bytes is not None
    assert total <= loader.asked_bytes <= 1.1 * total
    assert 0.9 * total <= loader.disk_bytes <= 2 * total


def test_cold_pages_come_from_the_disk_and_warm_ones_do_not() -> None:
    cold, warm = measured(*STORAGE), measured(*STORAGE, "--keep")
    total = cold.log["bytes_per_batch"] * cold.log["batches"]
    for found in (cold, warm):
        asked = loader_of(found).asked_bytes
        assert asked is not None
        assert total <= asked <= 1.1 * total
    from_disk = [loader_of(found).disk_bytes for found in (cold, warm)]
    assert from_disk[1] is not None
    assert from_disk[1] <= 0.1 * total  # just written: they are still in memory
    on_disk = Path(f"/sys/dev/block/{_device()}").exists()
    if on_disk:
        assert from_disk[0] is not None
        assert from_disk[0] >= 0.9 * total


def test_cold_pages_read_in_small_pieces_block() -> None:
    folder = Path(tempfile.mkdtemp(prefix="split-"))
    words = (*STORAGE, "--pattern", "scattered", "--view", str(folder / "view"))
    found = through_hotlap(python(words, folder), folder)
    view = view_of(folder)
    theirs = {
        part: sum(line["items"][f"{part}_ns"] or 0 for line in view)
        for part in ("blocked", "cpu", "runqueue")
    }
    loader = loader_of(found)
    ours = {part: loader.split[part].ns or 0 for part in theirs}
    assert max(ours, key=ours.__getitem__) == max(theirs, key=theirs.__getitem__), (ours, theirs)


def _device() -> str:
    device = os.stat(tempfile.gettempdir()).st_dev
    return f"{os.major(device)}:{os.minor(device)}"
