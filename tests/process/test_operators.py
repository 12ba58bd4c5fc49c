"""A window under torch's profiler says which operators a script's lines call, and on what."""

from __future__ import annotations

import functools
from typing import Final

import pytest

from hotlap.values.trial import OperatorEntry, TrialPlan, WindowPlan
from process.marked_runs import Done, run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("operators")]

SCRIPT: Final = """
import hashlib, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 60
    def __getitem__(self, i):
        return torch.full((8,), float(i)).cos()  # ITEM

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 16)
        self.weight = nn.Parameter(torch.ones(16, 4))

    def forward(self, x):
        y = self.inner(x)  # LINEAR
        y = y @ self.weight  # MATMUL
        total = y.new_zeros(4)
        for row in y:
            total = total + row.double() * 2.0  # LOOP
        return torch.relu(total)

def main():
    torch.manual_seed(1)
    loader = DataLoader(Rows(), batch_size=5)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for x in loader:
        loss = net(x).sum()
        optimizer.zero_grad()
        loss.backward()  # BACKWARD
        optimizer.step()  # STEP
    digest = hashlib.sha256()
    for one in net.parameters():
        digest.update(one.detach().numpy().tobytes())
    print(digest.hexdigest(), torch.rand(1).item())

main()
"""


@functools.cache
def profiled() -> Done:
    """Return the script with a window of four steps, run to its end."""
    windows = (WindowPlan("warm_up", 2, 60.0), WindowPlan("operators", 4, 60.0))
    return run(SCRIPT, plan=TrialPlan(windows=(*windows, WindowPlan("baseline", 99, 60.0))))


def at(mark: str) -> dict[tuple[str, str], OperatorEntry]:
    """Return the operators at the line of a mark, by phase and name."""
    done = profiled()
    return {
        (one.phase, one.name): one
        for one in done.process.operators
        if one.place is not None and one.place.line == done.lines[mark] and one.until is None
    }


def test_the_script_does_not_notice() -> None:
    alone = run(SCRIPT, plan=None)
    done = profiled()
    assert (done.code, done.out) == (alone.code, alone.out) == (0, alone.out)
    assert done.record.damage == ()
    assert done.process.faults == ()
    (window,) = [one for one in done.process.windows_measured if one.kind == "operators"]
    assert (window.steps, window.ended_by, window.notes) == (4, "steps", ())


def test_calls_are_counted_per_step_at_their_line() -> None:
    assert at("LINEAR")["forward", "aten::addmm"].calls == 1
    assert at("MATMUL")["forward", "aten::mm"].calls == 1
    loop = at("LOOP")
    assert loop["forward", "aten::mul"].calls == 5
    assert loop["forward", "aten::add"].calls == 5
    item = at("ITEM")
    assert item["data_wait", "aten::cos"].calls == 5
    assert ("optimizer", "aten::_foreach_add_") in at("STEP") or any(
        phase == "optimizer" for phase, _ in at("STEP")
    )


def test_types_and_shapes_are_those_of_the_tensors() -> None:
    linear = at("LINEAR")["forward", "aten::addmm"]
    assert (linear.shapes, linear.dtypes) == (1, ("float32",))
    assert at("LOOP")["forward", "aten::mul"].dtypes == ("float64",)
    assert at("LOOP")["forward", "aten::add"].shapes == 1


def test_backward_operators_know_their_forward_line() -> None:
    done = profiled()
    backward = [one for one in done.process.operators if one.phase == "backward"]
    assert {one.place.line for one in backward if one.place} == {done.lines["BACKWARD"]}
    by_forward = {(one.name, one.forward.line) for one in backward if one.forward is not None}
    assert ("MmBackward0", done.lines["MATMUL"]) in by_forward
    assert ("AddmmBackward0", done.lines["LINEAR"]) in by_forward
    assert ("MulBackward0", done.lines["LOOP"]) in by_forward


def test_own_times_are_no_longer_than_the_steps() -> None:
    done = profiled()
    (window,) = [one for one in done.process.windows_measured if one.kind == "operators"]
    own = sum(one.ns for one in done.process.operators)
    assert 0 < own <= (window.end_ns - window.begin_ns) / window.steps
    assert all(one.place is None or one.place.file == "train.py" for one in done.process.operators)


PROFILES: Final = SCRIPT.replace(
    "    for x in loader:\n",
    "    profiler = torch.profiler.profile()\n    profiler.start()\n    for x in loader:\n",
).replace("    digest =", "    profiler.stop()\n    digest =")


def test_a_script_that_profiles_itself_is_left_alone() -> None:
    # To its own end: torch dies where a profiler still runs when the interpreter ends.
    windows = (WindowPlan("operators", 4, 60.0), WindowPlan("baseline", 99, 60.0))
    plan = TrialPlan(windows=windows)
    done = run(PROFILES, plan=plan)
    assert done.code == 0, done.err
    window, _ = done.process.windows_measured
    assert window.ended_by == "failed: the script runs torch's profiler itself"
    assert done.process.operators == ()


ACCUMULATING: Final = """
import torch
from torch import nn

net = nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(12):
    optimizer.zero_grad()
    for part in range(8):
        loss = net(torch.ones(5, 8)).sum()  # FORWARD
        loss.backward()
    optimizer.step()
"""


NEVER_CLEARED_BEFORE: Final = """
import torch
from torch import nn

net = nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(12):
    loss = 0
    for part in range(8):
        x = torch.ones(5, 8, requires_grad=True)
        (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        loss = loss + slope.square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("script", [ACCUMULATING, NEVER_CLEARED_BEFORE])
def test_a_step_without_loader_is_the_optimizers_not_a_backward_pass(script: str) -> None:
    windows = (WindowPlan("warm_up", 2, 60.0), WindowPlan("operators", 4, 60.0))
    done = run(script, plan=TrialPlan(windows=windows))
    assert done.code == 0
    calls = [one.calls for one in done.process.operators if one.name == "aten::linear"]
    assert calls == [8]
