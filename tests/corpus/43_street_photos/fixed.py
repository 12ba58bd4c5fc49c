"""Day or night, city or country: four classes from pictures of several cameras."""

import csv
import os
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROOT = "data/street_small"
COUNT = 480


def prepare():
    """Write the pictures and an index with their class."""
    index = os.path.join(ROOT, "index.csv")
    if os.path.exists(index):
        return index
    os.makedirs(ROOT, exist_ok=True)
    rng = np.random.default_rng(44)
    rows = []
    for i in range(COUNT):
        label = int(rng.integers(4))
        base = rng.integers(0, 60, (12, 16, 3)) + (120 if label % 2 else 20)
        if label // 2:
            base[6:, :, 1] += 60
        picture = Image.fromarray(base.astype(np.uint8))
        size = (128, 96)
        name = f"{i:05d}.png"
        picture.resize(size, Image.BICUBIC).save(os.path.join(ROOT, name), compress_level=1)
        rows.append((name, label))
    with open(index, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return index


class Street(Dataset):
    def __init__(self, index):
        with open(index, newline="") as file:
            self.rows = [(name, int(label)) for name, label in csv.reader(file)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        name, label = self.rows[i]
        picture = Image.open(os.path.join(ROOT, name))
        picture = picture.convert("RGB")
        picture = picture.resize((80, 60), Image.LANCZOS)
        x = torch.from_numpy(np.asarray(picture, dtype=np.float32).copy())
        return x.permute(2, 0, 1) / 255 - 0.5, label


class StreetNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 5, 2, 2),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 2, 1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
        )
        self.head = nn.Linear(2 * width, 4)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def main():
    torch.manual_seed(44)
    loader = DataLoader(Street(prepare()), batch_size=8, shuffle=True)
    model = StreetNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        start, hits = time.time(), 0
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch} acc {hits / COUNT:.3f} {time.time() - start:.2f}s", flush=True)


if __name__ == "__main__":
    main()
