"""Baking faults from pictures of the crumb. Checkpoints in data/runs, copies in data/drive."""

import shutil
import time
from pathlib import Path

import torch
import torch.nn as nn
import torch.optim as optim

RUN = Path("data/runs/crumbs")
DRIVE = Path("data/drive")
FAULTS = ["fine", "tunnels", "dense", "collapsed"]
EPOCHS = 8
BATCH = 32


def crumbs(n, seed):
    g = torch.Generator().manual_seed(seed)
    fault = torch.randint(len(FAULTS), (n,), generator=g)
    fine = torch.randn(n, 1, 48, 48, generator=g)
    big = nn.functional.interpolate(torch.randn(n, 1, 8, 8, generator=g), (48, 48), mode="bilinear")
    mix = torch.tensor([0.3, 1.2, 0.1, 0.8])[fault][:, None, None, None]
    tilt = torch.linspace(0, 1, 48)[None, None, :, None] * (fault == 3).float()[:, None, None, None]
    return fine * 0.6 + big * mix + tilt, fault


class CrumbNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(64 * 36, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 4)
        )

    def forward(self, x):
        return self.classifier(self.features(x))


def save_checkpoint(epoch, model, optimizer):
    path = RUN / f"epoch_{epoch:03d}.pt"
    torch.save(
        {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path
    )
    return path


def sync_to_drive(path):
    shutil.copy2(path, DRIVE)


def main():
    torch.manual_seed(77)
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    DRIVE.mkdir(parents=True, exist_ok=True)
    x, y = crumbs(1200, 77)
    x_val, y_val = crumbs(320, 78)
    model = CrumbNet()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        t = time.time()
        model.train()
        running = 0.0
        for idx in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            loss = criterion(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            running += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            acc = (model(x_val).argmax(1) == y_val).float().mean().item()
        path = save_checkpoint(epoch, model, optimizer)
        sync_to_drive(path)
        print(
            f"Epoch {epoch + 1}/{EPOCHS} loss {running / len(x):.4f} val_acc {acc:.3f} "
            f"[{time.time() - t:.2f}s]",
            flush=True,
        )


if __name__ == "__main__":
    main()
