"""Grades of saffron threads from photographs, with stochastic weight averaging."""

from __future__ import annotations

import dataclasses
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset


@dataclasses.dataclass(frozen=True)
class Settings:
    grades: int = 5
    side: int = 32
    width: int = 32
    batch: int = 50
    epochs: int = 9
    average_from: int = 1
    lr: float = 0.05
    seed: int = 96


def threads(s: Settings, count: int, seed: int) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    grade = torch.randint(s.grades, (count,), generator=g)
    line = torch.linspace(-1, 1, s.side)
    slope = torch.randn(count, 1, 1, generator=g)
    body = torch.exp(-((line[:, None] - slope * line[None, :]) ** 2) / 0.02)
    redness = 0.3 + 0.15 * grade
    colour = torch.stack([redness, 0.6 - redness / 3, 0.1 + 0 * redness], 1)
    image = body[:, None] * colour[:, :, None, None]
    image += 0.25 * torch.randn(count, 3, s.side, s.side, generator=g)
    return TensorDataset(image, grade)


def block(cin: int, cout: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(),
    )


def network(s: Settings) -> nn.Sequential:
    return nn.Sequential(
        block(3, s.width),
        block(s.width, s.width),
        block(s.width, 2 * s.width, stride=2),
        block(2 * s.width, 2 * s.width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * s.width, s.grades),
    )


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


class Experiment:
    def __init__(self, s: Settings) -> None:
        self.s = s
        torch.manual_seed(s.seed)
        self.train_loader = DataLoader(threads(s, 1000, 0), s.batch, shuffle=True)
        self.test_loader = DataLoader(threads(s, 150, 1), s.batch)
        self.model = network(s)
        self.average = AveragedModel(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=s.lr, momentum=0.9)

    def train_epoch(self) -> float:
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    def run(self) -> float:
        for epoch in range(self.s.epochs):
            start = time.time()
            loss = self.train_epoch()
            if epoch >= self.s.average_from:
                self.average.update_parameters(self.model)
            took = time.time() - start
            print(f"epoch {epoch} loss {loss:.3f} took {took:.2f} s", flush=True)
        update_bn(self.train_loader, self.average)
        return accuracy(self.average, self.test_loader)


if __name__ == "__main__":
    print(f"accuracy of the averaged model {Experiment(Settings()).run():.3f}")
