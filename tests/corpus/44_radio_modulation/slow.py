"""Which modulation does a radio signal use? References come from a shared table."""

import multiprocessing
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SCHEMES = ["bpsk", "qpsk", "8psk", "qam16", "fm"]
LENGTH = 256


class References:
    """Channel references on a measuring device: reading one takes its time."""

    def __init__(self, context):
        self.lock = context.Lock()
        rng = np.random.default_rng(45)
        self.taps = rng.normal(0, 1, (64, 8)) * np.exp(-np.arange(8) / 2)

    def channel(self, number):
        time.sleep(0.008)
        return self.taps[number % len(self.taps)]


class Signals(Dataset):
    def __init__(self, count, references):
        self.count, self.references = count, references

    def __len__(self):
        return self.count

    def constellation(self, scheme, rng):
        if scheme == 4:
            return np.exp(1j * np.cumsum(rng.normal(0, 0.3, LENGTH)))
        if scheme == 3:
            levels = np.array([-3, -1, 1, 3]) / 3
            return rng.choice(levels, LENGTH) + 1j * rng.choice(levels, LENGTH)
        return np.exp(2j * np.pi * rng.integers(0, 2 ** (scheme + 1), LENGTH) / 2 ** (scheme + 1))

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        scheme = i % len(SCHEMES)
        signal = self.constellation(scheme, rng)
        with self.references.lock:
            taps = self.references.channel(i)
            signal = np.convolve(signal, taps, mode="same")
        signal = signal + 0.1 * (rng.normal(size=LENGTH) + 1j * rng.normal(size=LENGTH))
        x = np.stack([signal.real, signal.imag]).astype(np.float32)
        return torch.from_numpy(x), scheme


class Receiver(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(2, width, 9, padding=4),
            nn.ReLU(),
            nn.MaxPool1d(4),
            nn.Conv1d(width, width, 9, padding=4),
            nn.ReLU(),
            nn.MaxPool1d(4),
        )
        self.head = nn.Linear(width, len(SCHEMES))

    def forward(self, x):
        return self.head(self.layers(x).abs().mean(2))


def main(epochs=3, batch_size=16, workers=4):
    torch.manual_seed(45)
    signals = Signals(800, References(multiprocessing.get_context("fork")))
    loader = DataLoader(
        signals,
        batch_size=batch_size,
        shuffle=True,
        num_workers=workers,
        persistent_workers=True,
    )
    model = Receiver()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        start, hits = time.time(), 0
        for x, scheme in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, scheme)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (out.argmax(1) == scheme).sum().item()
        took = time.time() - start
        print(f"epoch {epoch} accuracy {hits / len(signals):.3f} {took:.2f} s", flush=True)


if __name__ == "__main__":
    main()
