"""Contrastive pre-training: two random views of each leaf should meet."""

import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    pictures: int = 960
    side: int = 48
    batch_size: int = 24
    epochs: int = 4
    lr: float = 1e-3
    temperature: float = 0.2
    blur_sigma: float = 1.6


def leaves(count, side, seed=10):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    pictures = np.empty((count, side, side, 3), dtype=np.uint8)
    for i in range(count):
        a, b, turn = rng.uniform(0.3, 0.8), rng.uniform(0.2, 0.5), rng.uniform(0, np.pi)
        u, v = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
        leaf = (u / a) ** 2 + (v / b) ** 2 < 1
        colour = np.where(leaf[..., None], rng.integers(40, 200, 3), rng.integers(180, 255, 3))
        pictures[i] = np.clip(colour + rng.normal(0, 8, colour.shape), 0, 255)
    return pictures


class TwoViews(Dataset):
    def __init__(self, pictures, config):
        self.pictures, self.config = pictures, config
        radius = 4
        axis = np.arange(-radius, radius + 1)
        kernel = np.exp(-(axis[:, None] ** 2 + axis**2) / (2 * config.blur_sigma**2))
        self.radius, self.kernel = radius, kernel / kernel.sum()
        line = np.exp(-(axis**2) / (2 * config.blur_sigma**2))
        self.line = (line / line.sum()).astype(np.float32)
        band = np.zeros((config.side, config.side + 2 * radius), dtype=np.float32)
        for i in range(config.side):
            band[i, i : i + 2 * radius + 1] = self.line
        self.band = band

    def __len__(self):
        return len(self.pictures)

    def blur(self, image):
        padded = np.pad(image, ((self.radius,) * 2, (self.radius,) * 2, (0, 0)), mode="reflect")
        rows = np.tensordot(self.band, padded, axes=(1, 0))
        return np.tensordot(self.band, rows, axes=(1, 1)).swapaxes(0, 1)

    def view(self, image, rng):
        if rng.random() < 0.5:
            image = image[:, ::-1]
        image = np.rot90(image, rng.integers(4))
        image = np.roll(image, rng.integers(-6, 7, 2), axis=(0, 1))
        image = (image - image.mean()) * rng.uniform(0.6, 1.4) + image.mean()
        image = image * rng.uniform(0.8, 1.2, 3).astype(image.dtype)
        return self.blur(image)

    def __getitem__(self, i):
        rng = np.random.default_rng(torch.randint(2**31, ()).item())
        image = self.pictures[i].astype(np.float32) / np.float32(255)
        views = [np.ascontiguousarray(self.view(image, rng)) for _ in range(2)]
        return [torch.from_numpy(v).float().permute(2, 0, 1) for v in views]


def encoder(out=64):
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(64, 96, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 96),
        nn.ReLU(),
        nn.Linear(96, out),
    )


def nt_xent(a, b, temperature):
    z = F.normalize(torch.cat([a, b]), dim=1)
    similarity = z @ z.T / temperature
    similarity.fill_diagonal_(-1e9)
    n = len(a)
    return F.cross_entropy(similarity, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


def main(config):
    torch.manual_seed(10)
    loader = DataLoader(
        TwoViews(leaves(config.pictures, config.side), config),
        batch_size=config.batch_size,
        shuffle=True,
        drop_last=True,
    )
    model = encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    for epoch in range(config.epochs):
        start, total = time.perf_counter(), 0.0
        for first, second in loader:
            loss = nt_xent(model(first), model(second), config.temperature)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        took = time.perf_counter() - start
        print(f"epoch {epoch} nt-xent {total / len(loader):.3f} took {took:.1f} s", flush=True)


if __name__ == "__main__":
    main(Config())
