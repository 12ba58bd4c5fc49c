#!/usr/bin/env python3
"""Mineral from its Raman spectrum. The instrument writes one wavelength after the other."""

import pathlib
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

DATA = pathlib.Path("data")
SAMPLES, WAVELENGTHS, MINERALS = 2000, 12_000, 14


def acquire():
    """All samples lie on the stage; the monochromator steps through the wavelengths."""
    if (DATA / "raman.npy").exists():
        return
    DATA.mkdir(exist_ok=True)
    rng = np.random.default_rng(74)
    mineral = rng.integers(0, MINERALS, SAMPLES)
    lines = rng.uniform(0, WAVELENGTHS, (MINERALS, 10))
    strength = rng.uniform(0.5, 2.0, (MINERALS, 10))
    table = np.empty((SAMPLES, WAVELENGTHS), np.float32, order="F")
    for w in range(WAVELENGTHS):
        peaks = (strength / (1 + ((lines - w) / 25) ** 2)).sum(1)
        table[:, w] = peaks[mineral] + rng.normal(0, 0.4, SAMPLES)
    np.save(DATA / "mineral.npy", mineral)
    np.save(DATA / "raman.npy", table)


class Spectra(Dataset):
    def __init__(self, folder=DATA, jitter=0.05):
        self.table = np.ascontiguousarray(np.load(folder / "raman.npy", mmap_mode="r"))
        self.mineral = np.load(folder / "mineral.npy")
        self.jitter = jitter

    def __len__(self):
        return len(self.mineral)

    def __getitem__(self, i):
        spectrum = np.array(self.table[i])
        scale = 1 + self.jitter * torch.randn(())
        return torch.from_numpy(spectrum) * scale, int(self.mineral[i])


class RamanNet(nn.Sequential):
    def __init__(self, width=128):
        super().__init__(
            nn.Linear(WAVELENGTHS, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, MINERALS),
        )


def epoch_of(model, loader, optimizer=None):
    total = hits = seen = 0
    for spectra, minerals in loader:
        with torch.set_grad_enabled(optimizer is not None):
            logits = model(spectra)
            loss = nn.functional.cross_entropy(logits, minerals)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(minerals)
        hits += (logits.argmax(1) == minerals).sum().item()
        seen += len(minerals)
    return total / seen, hits / seen


def main():
    acquire()
    torch.manual_seed(74)
    spectra = Spectra()
    train = DataLoader(Subset(spectra, range(200, SAMPLES)), batch_size=48, shuffle=True)
    valid = DataLoader(Subset(spectra, range(200)), batch_size=100)
    model = RamanNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=2e-3, momentum=0.9)
    for epoch in range(16):
        start = time.perf_counter()
        model.train()
        loss, _ = epoch_of(model, train, optimizer)
        took = time.perf_counter() - start
        model.eval()
        _, accuracy = epoch_of(model, valid)
        print(f"epoch {epoch:2d} loss {loss:.3f} valid {accuracy:.3f} ({took:.2f} s)", flush=True)


if __name__ == "__main__":
    main()
