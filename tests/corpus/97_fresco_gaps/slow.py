"""Fill the gaps of damaged frescoes: a convolutional network on small grey pictures."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE = 32


def frescoes(count, seed):
    """Folds, haloes and borders; about a fifth of each picture is lost in round spots."""
    g = torch.Generator().manual_seed(seed)
    line = torch.linspace(-1, 1, SIDE)
    yy, xx = torch.meshgrid(line, line, indexing="ij")
    angle, pitch, phase = 3.14 * torch.rand(3, count, 1, 1, generator=g)
    folds = torch.sin((4 + 2 * pitch) * (xx * angle.cos() + yy * angle.sin()) + 2 * phase)
    middle = torch.rand(count, 2, 1, 1, generator=g) - 0.5
    radius = ((xx - middle[:, 0]) ** 2 + (yy - middle[:, 1]) ** 2).sqrt()
    halo = torch.exp(-((radius - 0.5) ** 2) / 0.01)
    whole = (0.5 + 0.25 * folds + 0.4 * halo).clamp(0, 1)[:, None]
    lost = torch.zeros(count, SIDE, SIDE, dtype=torch.bool)
    for _ in range(5):
        spot = 2 * torch.rand(count, 2, 1, 1, generator=g) - 1
        lost |= (xx - spot[:, 0]) ** 2 + (yy - spot[:, 1]) ** 2 < 0.05
    return whole, lost[:, None].float()


class Restorer(nn.Module):
    def __init__(self, width=32, depth=2):
        super().__init__()
        layers = [nn.Conv2d(2, width, 5, padding=2), nn.ReLU()]
        for k in range(depth):
            layers += [nn.Conv2d(width, width, 3, padding=2**k, dilation=2**k), nn.ReLU()]
        self.net = nn.Sequential(*layers, nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, seen, lost):
        guess = self.net(torch.cat([seen, lost], 1))
        return seen * (1 - lost) + guess * lost


class Workshop:
    """Keeps model, optimizer and data together."""

    def __init__(self, args):
        torch.manual_seed(119)
        self.loader = DataLoader(
            TensorDataset(*frescoes(args.pictures, 119)), args.batch, shuffle=True
        )
        self.model = Restorer()
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=args.lr)

    def error(self, whole, lost):
        picture = self.model(whole * (1 - lost), lost)
        return ((picture - whole).square() * lost).sum() / lost.sum()

    def learn(self, whole, lost):
        def closure():
            self.optimizer.zero_grad()
            loss = self.error(whole, lost)
            loss.backward()
            return loss

        loss = closure()
        self.optimizer.step(closure)
        return loss.item()

    def epoch(self):
        return sum(self.learn(*batch) for batch in self.loader) / len(self.loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=1600)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=5e-4)
    args = parser.parse_args()
    workshop = Workshop(args)
    for number in range(args.epochs):
        start = time.time()
        mean = workshop.epoch()
        print(f"epoch {number} error {mean:.5f} {time.time() - start:.2f} s", flush=True)


if __name__ == "__main__":
    main()
