"""Trains one tiny model again and again in this process: once alone, once measured, and once for
every end of a channel with a fault in it. Each time under a session of its own.

`fault_driver.py FOLDER FAULT...`: ``FOLDER/<name>.json`` says what came of the training "alone",
of "none" (measured without a fault) and of each fault; ``FOLDER/<name>`` is the run's record.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed
from torch.utils.data import DataLoader, Dataset

from hotlap.inject.session import Session
from hotlap.runs.store import write_manifest

EPOCHS: Final = 2


class Rows(Dataset[Any]):  # type: ignore[misc] # torch is Any to the checker
    """Points whose label is the sign of their sum."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        x = torch.randn(8, generator=torch.Generator().manual_seed(index))
        return x, (x.sum() > 0).long()


def evaluate(model: Any, folder: Path) -> None:
    """Evaluate and save the model."""
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(Rows()))
    model.train()
    torch.save(model.state_dict(), folder / "model.pt")
    print(f"right: {right}")


def epoch(model: Any, optimizer: Any, loader: Any) -> list[float]:
    """Train on all batches; return the losses."""
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        optimizer.step()
        losses.append(mean.item())
        print(f"loss {losses[-1]:.6f}")
    print(f"read {len(losses)}", file=sys.stderr, flush=True)
    return losses


def train(folder: Path) -> dict[str, Any]:
    """Train with everything that has a hook; return what makes one training equal to another."""
    torch.manual_seed(5)
    inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Dropout(0.1))
    model = torch.nn.Sequential(torch.compile(inner, backend="eager"), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    here = DataLoader(Rows(), batch_size=4, shuffle=True)
    two = DataLoader(
        Rows(), batch_size=4, shuffle=True, num_workers=2, multiprocessing_context="fork"
    )
    losses = []
    for _ in range(EPOCHS):
        losses += epoch(model, optimizer, here)
        losses += epoch(model, optimizer, two)
        evaluate(model, folder)
    digest = hashlib.sha256()
    for tensor in model.parameters():
        digest.update(tensor.detach().numpy().tobytes())
    return {"weights": digest.hexdigest(), "losses": losses, "drawn": torch.rand(2).tolist()}


def heard(folder: Path) -> dict[str, Any]:
    """Train, and return the result with all that went to the two standard streams."""
    kept = os.dup(1), os.dup(2)
    files = [folder / "stdout", folder / "stderr"]
    for number, path in zip((1, 2), files, strict=True):
        with path.open("wb") as file:
            os.dup2(file.fileno(), number)
    try:
        found = train(folder)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
    out, err = (path.read_text() for path in files)
    return {**found, "stdout": out, "stderr": err}


def under_hotlap(record: Path, faults: tuple[str, ...]) -> dict[str, Any]:
    """Train under a session with these faults; its record is in ``record``."""
    record.mkdir()
    torch._dynamo.reset()  # what is compiled is compiled again; not later, as it drops callbacks
    now = time.monotonic_ns()
    write_manifest(record, {"format": 1, "command": ["train"], "spawn_ns": now})
    session = Session(record, str(record), faults, start_ns=now)
    session.begin()
    try:
        return heard(record)
    finally:
        session.end()


def main() -> None:
    """Train alone, measured, and with every fault."""
    folder, faults = Path(sys.argv[1]), sys.argv[2:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1
    )
    (folder / "alone").mkdir()
    found = {"alone": heard(folder / "alone"), "none": under_hotlap(folder / "none", ())}
    for fault in faults:
        found[fault] = under_hotlap(folder / fault, (fault,))
    for name, said in found.items():
        (folder / f"{name}.json").write_text(json.dumps(said))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
