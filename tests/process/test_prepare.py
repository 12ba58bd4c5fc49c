"""A script that applies its plan itself: the same training, alone and under hotlap."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.machine.facts import machine_facts
from hotlap.tune.fingerprint import hardware
from hotlap.tune.plan_file import write
from unit.tune.plans import choice, plan

SCRIPT = """
import json, sys
import torch
from torch.utils.data import DataLoader, TensorDataset
import hotlap

torch.manual_seed(3)
data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
if sys.argv[1:] == ["prepared"]:
    loader, model, optimizer = hotlap.prepare(loader, model, optimizer)
losses = []
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=False)
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(json.dumps({"losses": losses, "workers": loader.num_workers}))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a script and a plan of this machine."""
    (tmp_path / "train.py").write_text(SCRIPT)
    choices = (choice("loader_workers", 1), choice("zero_grad_to_none", True))
    made = plan(*choices, fingerprint=hardware(machine_facts(())))
    write(tmp_path / "hotlap.plan.toml", made)
    return tmp_path


def trained(place: Path, *words: str) -> dict[str, object]:
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[0])
    assert isinstance(found, dict)
    return found


BARE = (sys.executable, "train.py")
OURS = (sys.executable, "-m", "hotlap")


def test_the_training_is_the_same(place: Path) -> None:
    expected, found = trained(place, *BARE), trained(place, *BARE, "prepared")
    assert (expected["workers"], found["workers"]) == (0, 1)
    assert found["losses"] == expected["losses"]


def test_under_run_it_is_applied_by_the_script(place: Path) -> None:
    expected = trained(place, *BARE)
    found = trained(place, *OURS, "run", "--quiet", *BARE, "prepared")
    assert found == {"losses": expected["losses"], "workers": 1}


def test_a_plan_of_the_command_line_counts_alone(place: Path) -> None:
    other = place / "other.toml"
    write(other, plan(choice("loader_workers", 2), fingerprint=hardware(machine_facts(()))))
    found = trained(place, *OURS, "run", "--quiet", "--plan", "other.toml", *BARE, "prepared")
    assert found["workers"] == 2


def test_a_trial_sees_the_script_without_its_plan(place: Path) -> None:
    words = (*OURS, "diagnose", "--steps", "10", "--json", "out.json", "--", *BARE, "prepared")
    subprocess.run(words, cwd=place, capture_output=True, check=False)
    said = json.loads((place / "out.json").read_text())
    assert [one["workers"] for one in said["loaders"]] == [0]
