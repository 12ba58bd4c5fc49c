"""Land use classes from six-band tiles kept in one memory map."""

import argparse
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BANDS, SIDE, USES = 6, 64, 7


def write_tiles(path, count):
    """Patchwork of fields with a spectrum for each use."""
    if os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rng = np.random.default_rng(19)
    spectrum = rng.integers(200, 3000, (USES, BANDS))
    use = rng.integers(0, USES, count)
    tiles = np.lib.format.open_memmap(path, "w+", np.uint16, (count, BANDS, SIDE, SIDE))
    for i, u in enumerate(use):
        field = rng.normal(1, 0.2, (1, 8, 8)).repeat(8, axis=1).repeat(8, axis=2)
        noise = rng.normal(0, 80, (BANDS, SIDE, SIDE))
        tiles[i] = np.clip(spectrum[u][:, None, None] * field + noise, 0, 10_000)
    np.save(path.replace(".npy", "_use.npy"), use)


class Tiles(Dataset):
    def __init__(self, path):
        self.tiles = np.load(path, mmap_mode="r")
        self.use = np.load(path.replace(".npy", "_use.npy"))

    def __len__(self):
        return len(self.use)

    def __getitem__(self, i):
        tile = self.tiles[i].astype(np.float32) / 3000
        k = np.random.randint(4)
        tile = np.rot90(tile, k, axes=(1, 2))
        ndvi = (tile[3] - tile[2]) / (tile[3] + tile[2] + 1e-3)
        ndwi = (tile[1] - tile[3]) / (tile[1] + tile[3] + 1e-3)
        low, high = np.percentile(tile, [2, 98])
        tile = np.clip((tile - low) / (high - low), 0, 1)
        planes = np.concatenate([tile, ndvi[None], ndwi[None]]).astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(planes)), int(self.use[i])


def network(width=24):
    layers, last = [], BANDS + 2
    for i in range(4):
        out = width * (i + 1)
        layers += [nn.Conv2d(last, out, 3, 2, 1), nn.BatchNorm2d(out), nn.ReLU()]
        last = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, USES))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(19)
    write_tiles("data/tiles.npy", 480)
    loader = DataLoader(
        Tiles("data/tiles.npy"),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
    )
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        began, hits = time.time(), 0
        for tiles, use in loader:
            out = model(tiles)
            loss = nn.functional.cross_entropy(out, use)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (out.argmax(1) == use).sum().item()
        took = time.time() - began
        print(f"epoch {epoch} accuracy {hits / 480:.3f} in {took:.1f}s", flush=True)


if __name__ == "__main__":
    main()
