"""Recognise hand gestures from six inertial channels."""

import argparse
import json
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EventWriter:
    """A tiny stand-in for an event file: one JSON object per line."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, "events.jsonl"), "w")

    def scalar(self, tag, value, step):
        self.file.write(json.dumps({"tag": tag, "value": value, "step": step}) + "\n")

    def histogram(self, tag, tensor, step):
        values = tensor.detach().numpy().ravel()
        counts, edges = np.histogram(values, bins=64)
        entry = {"tag": tag, "counts": counts.tolist(), "edges": edges.tolist(), "step": step}
        self.file.write(json.dumps(entry) + "\n")

    def close(self):
        self.file.close()


def gestures(count, length=100, seed=18):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, length)
    y = rng.integers(0, 8, count)
    shapes = [np.sin(2 * np.pi * (k + 1) * t * (1 + 0.2 * k * t)) for k in range(8)]
    x = rng.normal(0, 0.5, (count, 6, length))
    for i, k in enumerate(y):
        x[i, k % 6] += shapes[k]
        x[i, (k + 2) % 6] += np.roll(shapes[k], int(rng.integers(0, 20)))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class TemporalBlock(nn.Module):
    def __init__(self, cin, cout, dilation):
        super().__init__()
        self.conv = nn.Conv1d(cin, cout, 3, padding=dilation, dilation=dilation)
        self.norm = nn.BatchNorm1d(cout)
        self.skip = nn.Conv1d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))) + self.skip(x)


class TCN(nn.Module):
    def __init__(self, width=64, levels=5, classes=8):
        super().__init__()
        blocks = [TemporalBlock(6 if i == 0 else width, width, 2**i) for i in range(levels)]
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.blocks(x).mean(2))


def main(args):
    torch.manual_seed(18)
    loader = DataLoader(TensorDataset(*gestures(2400)), args.batch_size, shuffle=True)
    model = TCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    writer = EventWriter(args.logdir)
    step = 0
    for epoch in range(args.epochs):
        start = time.time()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            writer.scalar("loss", loss.item(), step)
            if step % args.histogram_every == 0:
                for name, parameter in model.named_parameters():
                    writer.histogram(f"weights/{name}", parameter, step)
                    writer.histogram(f"gradients/{name}", parameter.grad, step)
            step += 1
        print(f"epoch {epoch}: {loss.item():.4f} ({time.time() - start:.2f} s)", flush=True)
    writer.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--logdir", default="runs/gestures")
    parser.add_argument("--histogram-every", type=int, default=1)
    main(parser.parse_args())
