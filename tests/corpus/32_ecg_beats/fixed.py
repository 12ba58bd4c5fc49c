"""Arrhythmia classes from single heart beats, filtered on the fly."""

import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH, LEADS, CLASSES = 256, 8, 5


def start_worker(index):
    torch.manual_seed(100 + index)
    torch.set_num_threads(1)


class Beats(Dataset):
    """Synthetic beats; a low-rank cleaning is fitted to each of them."""

    def __init__(self, count):
        self.count = count
        t = torch.linspace(0, 1, LENGTH)
        frequency = torch.arange(1, 65)[:, None]
        turns = math.pi * frequency * t
        self.basis = torch.cat([torch.cos(turns), torch.sin(turns)])
        self.t = t

    def __len__(self):
        return self.count

    def raw(self, i):
        label = i % CLASSES
        generator = torch.Generator().manual_seed(i)
        centre = 0.35 + 0.05 * label
        wave = torch.exp(-((self.t - centre) ** 2) / (0.0008 * (label + 1)))
        wave = wave - 0.3 * torch.exp(-((self.t - centre - 0.12) ** 2) / 0.003)
        gain = torch.rand(LEADS, 1, generator=generator) + 0.5
        noise = 0.2 * torch.randn(LEADS, LENGTH, generator=generator)
        return gain * wave + noise, label

    def __getitem__(self, i):
        beat, label = self.raw(i)
        window = self.basis @ torch.diag(torch.hann_window(LENGTH)) @ self.basis.T
        for _ in range(6):
            window = window @ window.T / window.norm()
        cleaned = torch.linalg.solve(window + 0.1 * torch.eye(len(window)), self.basis @ beat.T)
        return torch.cat([beat, (self.basis.T @ cleaned).T / LENGTH]), label


class BeatNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(2 * LEADS, width, 7, 2, 3),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, 2, 2),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, 2, 1),
            nn.ReLU(),
        )
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.body(x).amax(2))


def main(epochs=2, batch_size=4):
    torch.manual_seed(33)
    loader = DataLoader(
        Beats(480),
        batch_size=batch_size,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
        worker_init_fn=start_worker,
        multiprocessing_context="spawn",
    )
    model = BeatNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        start, good = time.time(), 0
        for beat, label in loader:
            out = model(beat)
            loss = nn.functional.cross_entropy(out, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            good += (out.argmax(1) == label).sum().item()
        took = time.time() - start
        print(f"epoch {epoch} acc {good / 480:.3f} {took:.2f}s", flush=True)


if __name__ == "__main__":
    main()
