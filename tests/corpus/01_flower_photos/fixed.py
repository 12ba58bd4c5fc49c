"""Train a small flower classifier.

Folder layout: data/flowers/<class>/<id>.jpg
"""

import argparse
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset

CLASSES = ["daisy", "rose", "tulip", "sunflower"]
ROOT = "data/flowers"
SIZE = (96, 72)


def prepare(n_per_class=20):
    """Camera-like pictures: soft colour fields, petals and some sensor noise."""
    rng = np.random.default_rng(0)
    for c, name in enumerate(CLASSES):
        folder = os.path.join(ROOT, name)
        folder = folder + "_96px"
        if os.path.isdir(folder) and len(os.listdir(folder)) >= n_per_class:
            continue
        os.makedirs(folder, exist_ok=True)
        for i in range(n_per_class):
            small = rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)
            small[8:16, 10:22, c % 3] = 255
            img = Image.fromarray(small).resize((1280, 960), Image.BICUBIC)
            img = img.resize(SIZE, Image.BOX)
            img.save(os.path.join(folder, f"{i:04d}.jpg"), quality=92)


class FlowerFolder(Dataset):
    def __init__(self, root, repeat=4):
        self.items = []
        for label, name in enumerate(CLASSES):
            folder = os.path.join(root, name)
            folder = folder + "_96px"
            for f in sorted(os.listdir(folder)):
                self.items.append((os.path.join(folder, f), label))
        self.items = self.items * repeat

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        path, label = self.items[i]
        img = Image.open(path).convert("RGB")
        if random.random() < 0.5:
            img = img.transpose(Image.FLIP_LEFT_RIGHT)
        img = img.resize((64, 64), Image.BILINEAR)
        x = torch.from_numpy(np.asarray(img).copy()).permute(2, 0, 1).float() / 255
        return (x - 0.5) / 0.25, label


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width * 2, 3, 2, 1),
            nn.BatchNorm2d(width * 2),
            nn.ReLU(),
            nn.Conv2d(width * 2, width * 4, 3, 2, 1),
            nn.BatchNorm2d(width * 4),
            nn.ReLU(),
            nn.Conv2d(width * 4, width * 4, 3, 1, 1),
            nn.BatchNorm2d(width * 4),
            nn.ReLU(),
        )
        self.head = nn.Linear(width * 4, len(CLASSES))

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    torch.manual_seed(0)
    random.seed(0)
    prepare()
    loader = DataLoader(FlowerFolder(ROOT), batch_size=args.batch_size, shuffle=True)
    model = Net()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        t0 = time.time()
        seen = correct = 0
        for x, y in loader:
            out = model(x)
            loss = F.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += len(y)
            correct += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch} acc {correct / seen:.3f} time {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
