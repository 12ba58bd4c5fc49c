"""Wood species from macro photographs of the end grain."""

import argparse
import logging
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

log = logging.getLogger("wood")

SPECIES, SIDE = 8, 32


def end_grain(count, seed):
    g = torch.Generator().manual_seed(seed)
    species = torch.randint(SPECIES, (count,), generator=g)
    y, x = torch.meshgrid(torch.linspace(0, 1, SIDE), torch.linspace(0, 1, SIDE), indexing="ij")
    centre = torch.rand(count, 2, 1, 1, generator=g) - 1.0
    radius = ((y - centre[:, 0]) ** 2 + (x - centre[:, 1]) ** 2).sqrt()
    rings = torch.sin(2 * math.pi * radius * (3 + species[:, None, None]))
    tone = torch.rand(count, 3, 1, 1, generator=g)
    noise = torch.randn(count, 3, SIDE, SIDE, generator=g)
    return rings[:, None] * tone + 0.5 * noise, species


class Unit(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=stride, padding=1)
        self.norm = nn.GroupNorm(4, cout)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class WoodNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.units = nn.Sequential(
            Unit(3, 32, 1), Unit(32, 32, 1), Unit(32, 48, 2), Unit(48, 48, 1), Unit(48, 64, 2)
        )
        self.head = nn.Linear(64, SPECIES)

    def forward(self, x):
        return self.head(self.units(x).mean((2, 3)))


def trace(step, model, logits):
    log.debug(f"step {step} logits {logits}")
    for name, parameter in model.named_parameters():
        log.debug(f"step {step} {name} value {parameter} gradient {parameter.grad}")


def train(model, images, species, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    step, since = 0, time.time()
    for epoch in range(args.epochs):
        total = 0.0
        for index in torch.randperm(len(images)).split(args.batch):
            logits = model(images[index])
            loss = F.cross_entropy(logits, species[index])
            optimizer.zero_grad()
            loss.backward()
            trace(step, model, logits)
            optimizer.step()
            total += loss.item() * len(index)
            step += 1
        log.info("epoch %d loss %.4f", epoch, total / len(images))
    rate = step / (time.time() - since)
    log.info("finished: %.2f it/s", rate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    logging.basicConfig(
        level=logging.DEBUG if args.verbose else logging.INFO,
        format="%(asctime)s %(name)s %(message)s",
    )
    torch.manual_seed(94)
    train(WoodNet(), *end_grain(960, 0), args)


if __name__ == "__main__":
    main()
