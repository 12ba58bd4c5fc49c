"""2D UNet for lung masks. One archive per patient holds the volume and its mask."""

import argparse
import glob
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEPTH, SIDE = 40, 72


def simulate_patients(folder, count):
    os.makedirs(folder, exist_ok=True)
    if len(glob.glob(f"{folder}/*.npz")) == count:
        return
    rng = np.random.default_rng(6)
    y, x = np.mgrid[:SIDE, :SIDE]
    for p in range(count):
        volume = rng.normal(40, 12, (DEPTH, SIDE, SIDE)).astype(np.int16)
        mask = np.zeros((DEPTH, SIDE, SIDE), dtype=np.uint8)
        for z in range(DEPTH):
            radius = 8 + 12 * np.sin(np.pi * (z + 1) / (DEPTH + 1)) + rng.normal(0, 1)
            for cx in (24, 48):
                mask[z] |= (x - cx) ** 2 + (0.7 * (y - 36)) ** 2 < radius**2
        volume[mask == 1] -= 700
        np.savez_compressed(f"{folder}/patient_{p:03d}.npz", volume=volume, mask=mask)


class Slices(Dataset):
    def __init__(self, folder):
        self.paths = sorted(glob.glob(f"{folder}/*.npz"))
        self.volumes = [self.read(path) for path in self.paths]

    def read(self, path):
        with np.load(path) as archive:
            return archive["volume"], archive["mask"]

    def __len__(self):
        return len(self.paths) * DEPTH

    def __getitem__(self, i):
        patient, z = divmod(i, DEPTH)
        volume, mask = self.volumes[patient]
        image = np.clip((volume[z].astype(np.float32) + 1000) / 1400, 0, 1)
        return torch.from_numpy(image)[None], torch.from_numpy(mask[z].astype(np.float32))[None]


def double(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(cout, cout, 3, padding=1),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, w=8):
        super().__init__()
        self.down1, self.down2, self.bottom = double(1, w), double(w, 2 * w), double(2 * w, 4 * w)
        self.up2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2)
        self.up1 = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.join2, self.join1 = double(4 * w, 2 * w), double(2 * w, w)
        self.out = nn.Conv2d(w, 1, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.bottom(self.pool(b))
        b = self.join2(torch.cat([self.up2(c), b], 1))
        return self.out(self.join1(torch.cat([self.up1(b), a], 1)))


def dice_loss(logits, mask):
    p = torch.sigmoid(logits)
    inter = (p * mask).sum((1, 2, 3))
    return 1 - ((2 * inter + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/ct")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=4)
    opts = parser.parse_args()

    torch.manual_seed(6)
    simulate_patients(opts.data, 12)
    loader = DataLoader(Slices(opts.data), opts.batch_size, shuffle=True)
    net = UNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(opts.epochs):
        tic, losses = time.time(), []
        for image, mask in loader:
            logits = net(image)
            entropy = nn.functional.binary_cross_entropy_with_logits(logits, mask)
            loss = dice_loss(logits, mask) + entropy
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.4f} [{time.time() - tic:.1f} s]", flush=True)
