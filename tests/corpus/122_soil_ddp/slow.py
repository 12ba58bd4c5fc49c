"""Carbon and clay in soils from near-infrared spectra, two processes on one machine.

torchrun --nproc-per-node 2 slow.py
"""

import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

BANDS = 700


class Spectra(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.rand(n, 2, generator=g)
        band = torch.linspace(0, 1, BANDS)
        centres = torch.tensor([0.3, 0.7])
        dips = torch.exp(-(((band[None] - centres[:, None]) / 0.06) ** 2))
        slope = torch.rand(n, 1, generator=g) * band[None]
        self.x = 0.6 + 0.3 * slope - 0.2 * self.y @ dips
        self.x += 0.03 * torch.randn(n, BANDS, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def average_gradients(model, world_size):
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
        p.grad /= world_size


def build(hidden=1536):
    return nn.Sequential(
        nn.Linear(BANDS, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 2),
    )


def train(rank, world_size, epochs=6, batch_size=16):
    torch.manual_seed(40)
    data = Spectra(1280, seed=40)
    sampler = DistributedSampler(data, world_size, rank, shuffle=True)
    loader = DataLoader(data, batch_size=batch_size, sampler=sampler)
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        began, total = time.time(), 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            average_gradients(model, world_size)
            optimizer.step()
            total += loss.item()
        if rank == 0:
            print(
                f"epoch {epoch} mse {total / len(loader):.5f} in {time.time() - began:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    dist.destroy_process_group()
