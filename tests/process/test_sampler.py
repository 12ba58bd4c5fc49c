"""What a trial's sampler says of scripts whose time is planted: the lines, the phases, the states.

No test asks how long something took: which of two planted costs is the larger is decided by how
often the script pays it.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from typing import Final

import pytest

from hotlap.values.trial import ProfileEntry, TrialPlan
from process.marked_runs import Done, run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sampler")]

SCRIPT: Final = """
import hashlib, json, os, random, signal, sys, threading, time
import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass  # BURN

class Rows(Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, i):
        burn(0.03)  # ITEM
        return torch.full((8,), float(i)) + torch.rand(8) + random.random() + numpy.random.rand()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 1)
    def forward(self, x):
        time.sleep(0.05)  # FORWARD
        return self.inner(x)

def collate(samples):
    time.sleep(0.06)  # COLLATE
    return torch.stack(samples)

def main():
    workers, how = int(sys.argv[1]), sys.argv[2]
    torch.manual_seed(1); random.seed(2); numpy.random.seed(3)
    burn(0.3)  # START
    context = {"multiprocessing_context": how} if workers else {}
    data = Subset(Rows(), list(range(16)))
    loader = DataLoader(data, 4, shuffle=True, num_workers=workers, collate_fn=collate, **context)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(2):
        net.train()
        for x in loader:
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            for i in range(3):
                net(torch.ones(1, 8))
                time.sleep(0.08)  # EVALUATE
    if how == "killed":
        time.sleep(3)  # ALIVE
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.4)  # END
    threads = [one.name for one in threading.enumerate()]
    weights = hashlib.sha256(net.inner.weight.detach().numpy().tobytes()).hexdigest()
    draws = [torch.rand(1).item(), random.random(), float(numpy.random.rand())]
    print(json.dumps([weights, draws, threads, sys.getswitchinterval()]))
    sys.exit(3)

if __name__ == "__main__":
    main()
"""
HZ: Final = 200.0


@functools.cache
def sampled(workers: int, how: str) -> Done:
    """Return the run of the script under the sampler; one per way to start workers."""
    plan = TrialPlan(sample_hz=HZ, clock_samples=True)
    return run(SCRIPT, str(workers), how, plan=plan)


@functools.cache
def bare(workers: int, how: str) -> Done:
    """Return the run of the script alone."""
    return run(SCRIPT, str(workers), how, plan=None)


CASES: Final = ((0, "none"), (2, "fork"), (2, "spawn"))
each = pytest.mark.parametrize(("workers", "how"), CASES)


@each
def test_the_script_does_not_notice(workers: int, how: str) -> None:
    ours, alone = sampled(workers, how), bare(workers, how)
    assert (ours.code, ours.out, ours.err) == (alone.code, alone.out, alone.err)
    assert ours.code == 3
    assert json.loads(ours.out)[2] == ["MainThread"]
    assert ours.record.damage == ()
    assert [one.faults for one in ours.record.processes] == [()] * len(ours.record.processes)


@each
def test_the_line_that_burns_is_the_place_of_the_time(workers: int, how: str) -> None:
    done = sampled(workers, how)
    role, phases = ("worker", ("fetch",)) if workers else ("trainer", ("data_wait",))
    spent: Counter[int] = Counter()
    for one in done.process.profile:
        if one.role == role and one.phase in phases and one.place is not None:
            spent[one.place.line] += one.ns
    burns = {done.lines["BURN"], done.lines["BURN"] - 1}  # the loop is two lines
    (line, _), *_ = spent.most_common(1)
    assert line in burns, spent
    for one in done.at("ITEM", role):
        if one.place is not None and one.place.line in burns and one.phase in phases:
            assert one.place.function == "burn"
            assert one.callers[0].function == "__getitem__"
            assert one.callers[0].file == "train.py"
            assert one.leaf.endswith(".burn")


@each
def test_what_a_thread_does_is_told_apart(workers: int, how: str) -> None:
    done = sampled(workers, how)
    if any(one.working_ns is None for one in done.process.profile):
        pytest.skip("the kernel does not tell how long a thread waited for a core")
    role = "worker" if workers else "trainer"

    def sums(entries: list[ProfileEntry]) -> list[int]:
        return [
            sum(getattr(one, f"{state}_ns") for one in entries)
            for state in ("working", "blocked", "runqueue")
        ]

    working, blocked, runqueue = sums(done.at("ITEM", role))
    assert working + runqueue > 3 * blocked
    working, blocked, runqueue = sums(done.at("FORWARD"))
    assert blocked > 3 * working
    working, blocked, runqueue = sums(done.at("EVALUATE"))
    assert blocked > 3 * working
    for one in done.process.profile:
        assert one.ns == (one.working_ns or 0) + (one.blocked_ns or 0) + (one.runqueue_ns or 0)


@each
def test_phases_are_those_of_the_script(workers: int, how: str) -> None:
    done = sampled(workers, how)

    def phases(mark: str, role: str = "trainer") -> Counter[str]:
        found: Counter[str] = Counter()
        for one in done.at(mark, role):
            found[one.phase] += one.samples
        return found

    assert set(phases("START")) == {"start_up"}
    assert set(phases("FORWARD")) == {"forward", "evaluation"}
    assert phases("FORWARD")["forward"] > phases("FORWARD")["evaluation"]
    assert set(phases("EVALUATE")) == {"evaluation"}
    assert set(phases("END")) <= {"shut_down", "evaluation"}
    if workers:
        assert set(phases("ITEM", "worker")) == {"fetch"}
        assert set(phases("COLLATE", "worker")) == {"collate"}
        assert not phases("ITEM")
        assert "idle" in done.spent("worker", lambda one: one.phase)
    else:
        assert set(phases("ITEM")) == {"data_wait"}
        assert not done.spent("worker", lambda one: one.phase)


@each
def test_time_is_neither_lost_nor_made_up(workers: int, how: str) -> None:
    process = sampled(workers, how).process
    seen = sum(one.ns for one in process.profile if one.role == "trainer")
    assert process.end_ns is not None
    assert 0 < seen <= process.end_ns - process.start_ns
    facts = process.profile_facts["trainer"]
    assert facts["looks"] == sum(one.samples for one in process.profile if one.role == "trainer")
    assert 0 < facts["cost_ns"] < facts["lasted_ns"]
    steps = [one for one in process.profile if one.phase in ("forward", "data_wait", "evaluation")]
    assert all(len(one.over_time) in (0, 16) for one in process.profile)
    assert sum(sum(one.over_time) for one in steps) >= 0.9 * sum(one.samples for one in steps)
    if workers:
        assert process.profile_facts["worker"]["processes"] == 2 * workers


@each
def test_every_sample_is_clocked(workers: int, how: str) -> None:
    clock = sampled(workers, how).process.sample_clock
    assert clock["count"] == sum(clock["histogram"].values()) == 32
    assert clock["together"] == 0
    assert clock["slowest_ns"] <= clock["total_ns"]
    assert clock["total_ns"] >= 32 * 30_000_000  # each burns as much CPU time as that
    collector = sampled(workers, how).process.collector
    assert collector["collections"] == sum(collector["by_generation"].values())
    assert collector["ns"] == sum(one["ns"] for one in collector["by_phase"].values())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells no columns before 3.11")
def test_the_operation_that_runs_is_known() -> None:
    done = sampled(0, "none")
    lines = SCRIPT.splitlines()
    found = Counter(
        lines[one.span[0] - 1].encode()[one.span[2] : one.span[3]].decode()
        for one in done.process.profile
        if one.span is not None and one.place is not None
        if one.place.line == done.lines["FORWARD"]
        for _ in range(one.samples)
    )
    assert found.most_common(1)[0][0] == "time.sleep(0.05)"


def test_a_killed_trainer_leaves_its_profile() -> None:
    done = run(SCRIPT, "0", "killed", plan=TrialPlan(sample_hz=HZ))
    assert done.code == -9
    assert done.process.end_ns is None
    assert done.at("FORWARD")
    assert {one.phase for one in done.at("START")} == {"start_up"}


def test_a_plain_run_has_none() -> None:
    done = run(SCRIPT, "0", "none", plan=TrialPlan())
    assert done.code == 3
    assert done.process.profile == ()
    assert done.process.sample_clock == {}
    assert done.process.collector["collections"] > 0


CHILDREN: Final = """
import multiprocessing, os, sys, time
import torch
from torch import nn

def train(steps):
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(2, 4)).sum().backward()
        time.sleep(0.05)  # STEP
        optimizer.step()

def wait(seconds):
    time.sleep(seconds)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    for target, argument in ((train, 20), (wait, 1.0)):
        child = context.Process(target=target, args=(argument,))
        child.start()
        child.join()
        assert child.exitcode == 0
    pid = os.fork()
    if pid == 0:
        time.sleep(0.5)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


def test_a_child_is_looked_at_only_if_it_trains() -> None:
    done = run(CHILDREN, plan=TrialPlan(sample_hz=HZ))
    assert (done.code, done.err) == (0, "")
    own = {one.pid: one for one in done.record.processes}
    trainer = done.process
    assert done.at("STEP")
    assert {one.phase for one in done.at("STEP")} <= {"forward", "backward", "other", "start_up"}
    others = [one for one in own.values() if one is not trainer and one.profile]
    assert len(others) == 1, "the parent, which waits, and no other child"
    assert others[0].profile_facts["trainer"]["looks"] > 0


SHORT: Final = """
import os, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, i):
        x = torch.full((8,), float(i))  # GIVES
        end = time.thread_time() + 0.002
        while time.thread_time() < end:
            pass  # KEEPS
        return x

before = sys.getswitchinterval()
net = nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x in DataLoader(Rows(), 8):
    net(x).mean().backward()
    optimizer.step()
if os.fork() == 0:
    print("child", sys.getswitchinterval(), flush=True)
    os._exit(0)
os.wait()
sys.setswitchinterval(0.003)
time.sleep(0.2)
print(before, sys.getswitchinterval())
"""


def test_a_sampler_in_haste_sees_code_that_keeps_the_interpreter_for_a_moment() -> None:
    done = run(SHORT, plan=TrialPlan(sample_hz=HZ, sample_switch_s=0.0005))
    assert (done.code, done.err) == (0, "")
    child, own = done.out.splitlines()
    assert child == "child 0.005", "it is changed back before a fork"
    assert own.endswith(" 0.003"), "what the script sets stays"
    keeps = {done.lines["KEEPS"], done.lines["KEEPS"] - 1}
    spent: Counter[bool] = Counter()
    for one in done.process.profile:
        if one.phase == "data_wait" and one.place is not None:
            spent[one.place.line in keeps] += one.ns
    assert spent[True] > spent[False]
    assert done.process.faults == ()
