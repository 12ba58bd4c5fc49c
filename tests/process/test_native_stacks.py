"""py-spy beside a real training: the library that a line spends its time in."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hotlap.experiment.native_stacks import NativeStacks, native_entries
from hotlap.values.record import Place
from process.style_runs import python
from process.trial_runs import trial, window

SCRIPT = """
import torch
from torch import nn
model = nn.Linear(400, 400)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(400, 400)
for step in range(100000):
    y = x @ x
    for _ in range(20):
        y = torch.mm(x, x)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LINE = SCRIPT.splitlines().index("        y = torch.mm(x, x)") + 1


@pytest.mark.slow
def test_the_library_below_a_line_is_seen(tmp_path: Path) -> None:
    sampling = NativeStacks(tmp_path)
    if why := sampling.why_not():
        pytest.skip(why)
    over = threading.Event()
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    def watched(folder: Path) -> list[str]:
        def look() -> None:
            while not over.wait(0.2):
                sampling.look(folder / "run")

        threading.Thread(target=look, daemon=True).start()
        return python([str(script)], folder)

    with sampling:
        found = trial((), window("warm_up", 2), window("native", 10**9, 6.0), command=watched)
        over.set()
    assert found.result.code == 0
    assert found.windows[-1].ended_by == "seconds"
    stacks = sampling.stacks()
    if isinstance(stacks, str):
        assert "ermission" in stacks, stacks
        pytest.skip(stacks)
    place = Place(str(script), LINE, "<module>")
    entries = native_entries(stacks, {(str(script), LINE): place})
    assert entries
    assert all((one.library or "").startswith(("libtorch", "libmkl")) for one in entries), entries
    assert sum(one.share for one in entries) <= 1.0
