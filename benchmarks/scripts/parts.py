"""What the measured training scripts share: model, data and their own clock.

Scripts import this from beside them, as a user's would; it knows nothing of hotlap.
"""

from __future__ import annotations

import argparse
import json
import os
from time import perf_counter_ns, process_time_ns, thread_time_ns
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 16
CLASSES = 10
SIDE = 16
MODELS = ("perceptron", "convolutions", "deep")
_KEPT = 4096


def arguments(parser: argparse.ArgumentParser | None = None) -> argparse.Namespace:
    """Read the command line that all scripts understand, and take one thread."""
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64, help="units of a layer, or channels")
    parser.add_argument("--model", choices=MODELS, default="perceptron")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--warm-up", type=int, default=100, help="steps left out at the start")
    parser.add_argument("--out", help="file for the script's own measurement")
    found = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return found


class Points(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Points and their classes, held in memory; as many as the steps of one epoch need."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.points = list(torch.randn(_KEPT, FEATURES))
        self.classes = list(torch.randint(CLASSES, (_KEPT,)))

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.points[index % _KEPT], self.classes[index % _KEPT]


def make_loader(batch: int, workers: int, steps: int) -> DataLoader[Any]:
    """Return a loader whose epoch has exactly ``steps`` batches."""
    return DataLoader(Points(batch * steps), batch_size=batch, num_workers=workers, shuffle=True)


def make_model(kind: str, width: int) -> nn.Module:
    """Return a perceptron with two hidden layers, two convolutions, or 100 submodules."""
    if kind == "perceptron":
        return nn.Sequential(
            nn.Linear(FEATURES, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, CLASSES),
        )
    if kind == "convolutions":
        return nn.Sequential(
            nn.Linear(FEATURES, SIDE * SIDE),
            nn.Unflatten(1, (1, SIDE, SIDE)),
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(width, CLASSES),
        )
    blocks = [
        nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(width, width), nn.ReLU())))
        for _ in range(4)
    ]
    return nn.Sequential(nn.Linear(FEATURES, width), *blocks, nn.Linear(width, CLASSES))


def make_optimizer(model: nn.Module, kind: str) -> torch.optim.Optimizer:
    """Return SGD; AdamW for the deep model, which reads a tensor per parameter on the CPU."""
    if kind == "deep":
        return torch.optim.AdamW(model.parameters(), lr=1e-4)
    return torch.optim.SGD(model.parameters(), lr=1e-3)


class Clock:
    """The script's own log: wall time and CPU time of the training thread after each step."""

    def __init__(self, warm_up: int) -> None:
        self.warm_up = warm_up
        self.walls: list[int] = []
        self.cpus: list[int] = []
        self._steps = 0
        self._process = 0

    def tick(self) -> None:
        """Note the end of a step."""
        self._steps += 1
        if self._steps < self.warm_up:
            return
        if not self.walls:
            self._process = process_time_ns()
        self.walls.append(perf_counter_ns())
        self.cpus.append(thread_time_ns())

    def measured(self) -> dict[str, Any]:
        """Return means and quantiles per step, in nanoseconds."""
        process = process_time_ns() - self._process
        walls = sorted(b - a for a, b in zip(self.walls, self.walls[1:], strict=False))
        cpus = sorted(b - a for a, b in zip(self.cpus, self.cpus[1:], strict=False))
        count = len(walls)
        return {
            "steps": count,
            "wall_mean_ns": sum(walls) / count,
            "wall_median_ns": walls[count // 2],
            "wall_lower_ns": walls[count // 4],
            "cpu_mean_ns": sum(cpus) / count,
            "cpu_median_ns": cpus[count // 2],
            "cpu_lower_ns": cpus[count // 4],
            "process_cpu_mean_ns": process / count,
        }

    def write(self, path: str | None) -> None:
        """Write the measurement to ``path``, whole or not at all; print it without one."""
        text = json.dumps(self.measured())
        if path is None:
            print(text)
            return
        with open(path + ".part", "w") as file:
            file.write(text)
        os.replace(path + ".part", path)
