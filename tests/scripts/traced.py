"""Small trainings with planted bugs, for recording them: BUG=halved|skip|decay|order|frozen|…"""

from __future__ import annotations

import argparse
import os
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BUG = os.environ.get("BUG", "")


class Samples(Dataset):
    """Samples that are fixed, or that draw from the generators named."""

    def __init__(self, count: int, draws: str) -> None:
        generator = torch.Generator().manual_seed(7)
        self.x = torch.randn(count, 8, generator=generator)
        self.y = self.x[:, :1].sin() + self.x[:, 1:2]
        self.draws = draws.split(",") if draws else []

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.x[index]
        if "torch" in self.draws:
            x = x + 0.01 * torch.rand(8)
        if "random" in self.draws:
            x = x * (1 + 0.01 * random.random())
        if "numpy" in self.draws:
            import numpy

            x = x + 0.01 * float(numpy.random.rand())
        return x, self.y[index]


def plain(options: argparse.Namespace) -> None:
    """Train a small network for some epochs."""
    norm = [nn.BatchNorm1d(16)] if options.norm else []
    net = nn.Sequential(nn.Linear(8, 16), *norm, nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
    rate, decay = (0.05 if BUG == "lr" else 0.1), (0.0 if BUG == "decay" else 0.01)
    if BUG == "frozen":
        net[0].weight.requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, weight_decay=decay)
    samples = Samples(options.samples, options.draws)
    loader = DataLoader(
        samples, 8, shuffle=BUG != "order", num_workers=options.workers, drop_last=False
    )
    steps = 0
    for _ in range(options.epochs):
        if options.anew:
            loader = DataLoader(samples, 8, shuffle=True)
        for x, y in loader:
            if BUG != "no_zero":
                optimizer.zero_grad()
            loss = (net(x) - y).square().mean()
            if BUG == "halved":
                loss = loss / 2
            if BUG == "bn":
                net(x)
            loss.backward()
            steps += 1
            if BUG != "skip" or steps % 4:
                optimizer.step()


def gan(options: argparse.Namespace) -> None:
    """Train two networks in turn, without a data loader."""
    maker, judge = nn.Linear(4, 8), nn.Linear(8, 1)
    one = torch.optim.Adam(judge.parameters(), lr=1e-3)
    two = torch.optim.Adam(maker.parameters(), lr=1e-3)
    for _ in range(options.epochs * 8):
        one.zero_grad()
        made = maker(torch.randn(16, 4))
        (judge(made.detach()).mean() - judge(torch.randn(16, 8)).mean()).backward()
        one.step()
        two.zero_grad()
        (-judge(maker(torch.randn(16, 4))).mean()).backward()
        two.step()


def lbfgs(options: argparse.Namespace) -> None:
    """Train with closures."""
    net = nn.Linear(8, 1)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        return loss

    for _ in range(options.epochs * 8):
        optimizer.step(closure)


def main() -> None:
    """Train as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--style", choices=("plain", "gan", "lbfgs"), default="plain")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--draws", default="")
    parser.add_argument("--norm", action="store_true")
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.seed is not None:
        torch.manual_seed(options.seed)
    {"plain": plain, "gan": gan, "lbfgs": lbfgs}[options.style](options)


if __name__ == "__main__":
    main()
