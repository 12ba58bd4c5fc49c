"""Fare per trip from a stream of trip records; a thread prepares batches ahead of the loop."""

import math
import queue
import random
import threading
import time

import numpy as np
import torch
from torch import nn

HOURS, ZONES = 24, 260


class TripStream:
    """Endless trips in batches, already scaled."""

    def __init__(self, batch_size, batches, seed):
        self.batch_size, self.batches = batch_size, batches
        self.rng = np.random.default_rng(seed)
        self.base = np.random.default_rng(73).gamma(2.0, 3.0, ZONES)

    def __iter__(self):
        for _ in range(self.batches):
            yield self.make()

    def make(self):
        rng, n = self.rng, self.batch_size
        start, stop = rng.integers(0, ZONES, (2, n))
        hour = rng.integers(0, HOURS, n)
        distance = np.abs(start - stop) * 0.2 + rng.gamma(2.0, 1.0, n)
        wobble = rng.normal(0, 0.5, (n, 40))
        rush = 1 + 0.4 * np.exp(-((hour - 17) ** 2) / 8)
        fare = self.base[start] + 1.6 * distance * rush + rng.normal(0, 1, n)
        clock = np.stack([np.sin(hour * math.pi / 12), np.cos(hour * math.pi / 12)], 1)
        dense = np.concatenate([clock, distance[:, None] / 20, wobble], 1).astype(np.float32)
        zones = np.stack([start, stop], 1)
        return (
            torch.from_numpy(zones),
            torch.from_numpy(dense),
            torch.from_numpy((fare / 20).astype(np.float32)),
        )


class ReadAhead:
    def __init__(self, source, depth=2):
        self.source = source
        self.ready = queue.Queue(maxsize=depth)
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self):
        for batch in self.source:
            self.ready.put(batch)
        self.ready.put(None)

    def __iter__(self):
        self.thread.start()
        while (batch := self.ready.get()) is not None:
            yield batch


class FareNet(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.zone = nn.Embedding(ZONES, 32)
        self.net = nn.Sequential(
            nn.Linear(64 + 43, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, zones, dense):
        return self.net(torch.cat([self.zone(zones).flatten(1), dense], 1)).squeeze(1)


def main(steps=600, batch_size=512):
    random.seed(73)
    torch.manual_seed(73)
    model = FareNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.HuberLoss()
    start, average = time.time(), None
    stream = ReadAhead(TripStream(batch_size, steps, seed=1))
    for step, (zones, dense, fare) in enumerate(stream, 1):
        optimizer.zero_grad()
        loss = criterion(model(zones, dense), fare)
        loss.backward()
        optimizer.step()
        value = loss.item()
        average = value if average is None else 0.95 * average + 0.05 * value
        if step % 100 == 0:
            rate = step / (time.time() - start)
            print(f"step {step:4d} loss {average:.4f} {rate:.1f} it/s", flush=True)


if __name__ == "__main__":
    main()
