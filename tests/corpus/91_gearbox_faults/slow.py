# Which gear is worn? Vibration clips of a test bench, one .npy file per clip.
from pathlib import Path
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FAULTS = 5
LENGTH = 2048
ROOT = Path("data") / "gearbox"


def run_test_bench(root, clips=400):
    if root.exists():
        return
    root.mkdir(parents=True)
    rng = np.random.default_rng(113)
    t = np.arange(LENGTH) / LENGTH
    for i in range(clips):
        fault = int(rng.integers(FAULTS))
        speed = rng.uniform(20, 30)
        mesh = np.sin(2 * np.pi * speed * 6 * t + rng.uniform(0, 6))
        knocks = np.maximum(0, np.cos(2 * np.pi * speed * (fault + 1) / 2 * t)) ** 40
        clip = mesh + 1.5 * knocks * rng.normal(1, 0.2, LENGTH) + rng.normal(0, 0.5, LENGTH)
        np.save(root / f"clip_{i:04d}_fault{fault}.npy", clip.astype(np.float32))


class GearboxClips(Dataset):
    """Clips of a folder; the fault is part of the file's name."""

    def __init__(self, root, flip=True):
        self.root = Path(root)
        self.flip = flip

    @property
    def clips(self):
        return sorted(self.root.glob("clip_*.npy"))

    @property
    def classes(self):
        return [f"gear {k}" for k in range(FAULTS)]

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, i):
        path = self.clips[i]
        clip = torch.from_numpy(np.load(path))
        fault = int(path.stem[-1])
        if self.flip and torch.rand(()) < 0.5:
            clip = -clip
        shift = int(torch.randint(LENGTH, ()))
        return clip.roll(shift)[None] / 2, fault


def block(inside, outside, kernel, stride):
    return nn.Sequential(
        nn.Conv1d(inside, outside, kernel, stride=stride, padding=kernel // 2),
        nn.BatchNorm1d(outside),
        nn.ReLU(),
    )


class WearNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            block(1, 32, 15, 4),
            block(32, 64, 9, 2),
            block(64, 128, 9, 1),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
        )
        self.head = nn.Linear(4 * 128, FAULTS)

    def forward(self, x):
        return self.head(self.features(x))


def train(epochs=10, batch_size=16, lr=2e-3):
    torch.manual_seed(113)
    run_test_bench(ROOT)
    data = GearboxClips(ROOT)
    loader = DataLoader(data, batch_size=batch_size, shuffle=True)
    net = WearNet()
    opt = torch.optim.AdamW(net.parameters(), lr=lr)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)
    print("classes:", ", ".join(data.classes))
    for epoch in range(1, epochs + 1):
        tic = time.perf_counter()
        running = 0.0
        for x, y in loader:
            loss = loss_fn(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
        took = time.perf_counter() - tic
        print(f"[{epoch}/{epochs}] loss {running / len(loader):.4f} time {took:.2f}", flush=True)


if __name__ == "__main__":
    train()
