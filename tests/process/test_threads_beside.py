"""A Python thread that polls beside a training is seen, with its place; one that sleeps is not."""

from __future__ import annotations

from pathlib import Path

from process.style_runs import python
from process.trial_runs import trial, window

SCRIPT = """
import threading
import time

import torch
from torch import nn

over = False


def poll():
    highest = 0
    while not over:
        highest = max(highest, 1)


def rest():
    while not over:
        time.sleep(0.01)


threading.Thread(target=poll, name="poller", daemon=True).start()
threading.Thread(target=rest, name="sleeper", daemon=True).start()
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(100000):
    loss = model(torch.randn(32, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOOP = range(SCRIPT.splitlines().index("def poll():") + 2, SCRIPT.splitlines().index("def rest():"))


def test_who_polls_is_told_from_who_sleeps(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    found = trial(
        (),
        window("baseline", 10**9, 4.0),
        command=lambda folder: python([str(script)], folder),
        sample_hz=100.0,
    )
    assert found.result.code == 0
    (thread,) = found.trainer.profile_facts["threads"]
    assert thread.name == "poller"
    assert thread.leaf == "__main__.poll"
    assert thread.place is not None
    assert thread.place.line in LOOP
    assert 0 < thread.cpu_ns <= thread.wall_ns
