"""Outline barnacles on photographs of harbour walls, trained on patches that show some."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

SIDE, PATCH = 512, 64


def walls(count, rng):
    """Photographs (uint8) with one colony each, and its outline."""
    y, x = np.mgrid[:SIDE, :SIDE]
    photos = np.empty((count, SIDE, SIDE), np.uint8)
    masks = np.empty((count, SIDE, SIDE), bool)
    for photo, mask in zip(photos, masks, strict=True):
        cy, cx = rng.integers(PATCH, SIDE - PATCH, 2)
        mask[:] = (y - cy) ** 2 + (x - cx) ** 2 < rng.integers(16, 23) ** 2
        photo[:] = rng.integers(60, 140, (SIDE, SIDE)) + 40 * mask
    return photos, masks


class PatchStream(IterableDataset):
    def __init__(self, photos, masks, length, share=0.15, seed=0):
        self.photos, self.masks = photos, masks
        self.length, self.share = length, share
        self.rng = np.random.default_rng(seed)

    def place(self, mask):
        while True:
            y, x = self.rng.integers(0, SIDE - PATCH + 1, 2)
            if mask[y : y + PATCH, x : x + PATCH].mean() >= self.share:
                return y, x

    def __iter__(self):
        for _ in range(self.length):
            i = self.rng.integers(len(self.photos))
            y, x = self.place(self.masks[i])
            window = (slice(y, y + PATCH), slice(x, x + PATCH))
            photo = torch.from_numpy(self.photos[i][window].astype(np.float32) / 255)
            mask = torch.from_numpy(self.masks[i][window].astype(np.float32))
            yield photo[None], mask[None]


def outliner(width=16):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 1, 1),
    )


def dice(logits, masks):
    p = torch.sigmoid(logits)
    overlap = (p * masks).sum((1, 2, 3))
    return 1 - (2 * overlap / (p + masks).sum((1, 2, 3)).clamp(min=1)).mean()


def main(epochs=5):
    torch.manual_seed(95)
    photos, masks = walls(120, np.random.default_rng(95))
    loader = DataLoader(PatchStream(photos, masks, length=1200), batch_size=16)
    model = outliner()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        start, losses = time.time(), []
        for patches, targets in loader:
            logits = model(patches)
            loss = criterion(logits, targets) + dice(logits, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        took = time.time() - start
        print(f"epoch {epoch} loss {np.mean(losses):.4f} time {took:.2f}s", flush=True)


if __name__ == "__main__":
    main()
