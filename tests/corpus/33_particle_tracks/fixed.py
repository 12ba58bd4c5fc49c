"""Tell one-track from two-track events in a layered detector."""

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LAYERS, SIDE = 10, 128


@dataclass
class Event:
    number: int
    charge: np.ndarray
    timing: np.ndarray
    tracks: int


class Events(Dataset):
    """Simulates an event: charge and time in each cell of each layer."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        rng = np.random.default_rng(number)
        tracks = 1 + number % 2
        charge = np.zeros((LAYERS, SIDE, SIDE))
        timing = np.zeros((LAYERS, SIDE, SIDE))
        for _ in range(tracks):
            x, y = rng.integers(30, SIDE - 30, 2)
            dx, dy = rng.uniform(-3, 3, 2)
            for layer in range(LAYERS):
                cx, cy = int(x + dx * layer), int(y + dy * layer)
                charge[layer, cy - 1 : cy + 2, cx - 1 : cx + 2] += rng.gamma(4, 1)
                timing[layer, cy, cx] = layer + rng.normal(0, 0.1)
        image = torch.from_numpy(charge[:, ::2, ::2] + charge[:, 1::2, 1::2]).half()
        return image, tracks - 1


class TrackNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(LAYERS, width, 5, 2, 2),
            nn.ReLU(),
            nn.Conv2d(width, width * 2, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(width * 2, width * 2, 3, 2, 1),
            nn.ReLU(),
        )
        self.head = nn.Linear(width * 2, 2)

    def forward(self, x):
        return self.head(self.features(x).sum((2, 3)) / 16)


def main(epochs=3, batch_size=8):
    torch.manual_seed(34)
    loader = DataLoader(
        Events(640),
        batch_size=batch_size,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
    )
    model = TrackNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        began, seen, right = time.time(), 0, 0
        for image, target in loader:
            image = image.float()
            out = model(image)
            loss = nn.functional.cross_entropy(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(target)
            right += (out.argmax(1) == target).sum().item()
        rate = seen / (time.time() - began)
        print(f"epoch {epoch} accuracy {right / seen:.3f} {rate:.0f} events/s", flush=True)


if __name__ == "__main__":
    main()
