"""Session-based recommendation with DistributedDataParallel (gloo).

torchrun --nproc-per-node 2 slow.py
"""

import argparse
import contextlib
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Sessions(Dataset):
    """Random walks over a catalogue; the next click is the label."""

    def __init__(self, count, length, items, seed=0):
        rng = np.random.default_rng(seed)
        start = rng.integers(0, items, (count, 1))
        moves = rng.integers(-3, 4, (count, length))
        self.clicks = torch.from_numpy((start + moves.cumsum(1)) % items)

    def __len__(self):
        return len(self.clicks)

    def __getitem__(self, i):
        row = self.clicks[i]
        return row[:-1], row[-1]


class NextItem(nn.Module):
    def __init__(self, items, width=128, hidden=512):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.mix = nn.Sequential(
            nn.Linear(width * 3, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, width),
        )

    def forward(self, history):
        e = self.items(history)
        h = self.mix(torch.cat([e[:, -1], e.mean(1), e.amax(1)], dim=1))
        return h @ self.items.weight.T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--items", type=int, default=4000)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = Sessions(16_000, 12, args.items)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=args.batch, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(NextItem(args.items))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    began = time.perf_counter()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = 0.0
        for i, (history, target) in enumerate(loader):
            last = (i + 1) % args.accumulate == 0
            with contextlib.nullcontext() if last else model.no_sync():
                loss = F.cross_entropy(model(history), target)
                (loss / args.accumulate).backward()
            total += loss.item()
            if last:
                optimizer.step()
                optimizer.zero_grad()
        if rank == 0:
            print(f"epoch {epoch}: loss {total / len(loader):.3f}", flush=True)
    if rank == 0:
        print(f"train time {time.perf_counter() - began:.1f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
