"""No more workers and threads are ever tried than quota, affinity and ranks leave cores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hotlap.diagnose import judge
from hotlap.experiment.stored import load
from hotlap.knobs import catalogue
from hotlap.values.facts import Facts
from hotlap.values.knob import Case, Offer

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "tuned.py"
WAITING = (str(SCRIPT), "--item-ms", "4", "--rows", "400", "--epochs", "1")
"""Each step waits for its samples: more workers than cores would make it faster."""
pytestmark = pytest.mark.slow


def facts_of(folder: Path, *before: str, command: Sequence[str]) -> Facts:
    """Diagnose a command in a folder, and return what was found out."""
    variables = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    words = [sys.executable, "-m", "hotlap", "diagnose", "--steps", "20", "--", *command]
    done = subprocess.run(
        [*before, *words],
        cwd=folder,
        env={**variables, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (found,) = folder.glob(".hotlap/runs/*/facts.json")
    return load(found)


def most_tried(facts: Facts) -> dict[str, int]:
    """Return the largest values that the knobs of workers and threads offer; 0 for none."""
    case = Case(facts, judge(facts).findings, {})
    most = {}
    for name in ("loader_workers", "intra_op_threads"):
        offer = catalogue.load(name).applies(case)
        most[name] = max(offer.values) if isinstance(offer, Offer) else 0
    return most


def test_as_many_as_there_are_cores(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts = facts_of(tmp_path, command=WAITING)
    assert most_tried(facts)["loader_workers"] <= (cores or 1)
    assert max(one.workers for one in facts.curve) <= (cores or 1)


def test_one_by_affinity(tmp_path: Path, on_one_core: tuple[str, ...]) -> None:
    facts = facts_of(tmp_path, *on_one_core, command=WAITING)
    assert facts.run.machine.cores_allowed == 1
    assert max(one.workers for one in facts.curve) == 1
    most = most_tried(facts)
    assert most["loader_workers"] <= 1  # none, where one was tried and brought nothing
    assert most["intra_op_threads"] == 0


@pytest.mark.root
def test_one_by_a_quota(tmp_path: Path, half_a_core: Path) -> None:
    enter = ("sh", "-c", f'echo $$ > {half_a_core}/cgroup.procs && exec "$@"', "sh")
    facts = facts_of(tmp_path, *enter, command=WAITING)
    assert facts.run.machine.cores_allowed == 0.5
    assert max((one.workers for one in facts.curve), default=0) <= 1
    most = most_tried(facts)
    assert most["loader_workers"] <= 1
    assert most["intra_op_threads"] <= 1


RANKS = """
import sys, time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 200
    def __getitem__(self, i):
        time.sleep(0.004)
        return torch.full((8,), float(i)), i % 2
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(Rows(), 8):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_a_rank_has_its_part(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    torchrun = ("torchrun", "--nproc-per-node", "2", "--rdzv-backend", "c10d")
    rendezvous = ("--rdzv-endpoint", "127.0.0.1:0", "ranks.py")
    facts = facts_of(tmp_path, command=(*torchrun, *rendezvous))
    assert len(facts.run.trainers) == 2
    most = most_tried(facts)
    assert most["loader_workers"] <= max(1, cores // 2)
    assert most["intra_op_threads"] <= max(1, cores // 2)
