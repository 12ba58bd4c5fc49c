"""Kinds of nebulae from small pictures, two processes.

    torchrun --nproc-per-node 2 slow.py

Scores are averages over the eight turned and mirrored views of a picture.
"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

KINDS, SIDE = 5, 32


def nebulae(count, seed):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(KINDS, (count,), generator=g)
    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    r = (x**2 + y**2).sqrt()[None]
    phase = 6.3 * torch.rand(count, 1, 1, generator=g)
    arms = torch.cos(kind[:, None, None] * torch.atan2(y, x)[None] + 5 * r + phase)
    pictures = torch.exp(-3 * r**2) * (1 + arms) + 0.35 * torch.randn(
        count, SIDE, SIDE, generator=g
    )
    return TensorDataset(pictures[:, None], kind)


def views(x):
    for turned in (x, x.flip(-1)):
        for k in range(4):
            yield torch.rot90(turned, k, (2, 3))


def build():
    def stage(i, o):
        return nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.ReLU(), nn.MaxPool2d(2)
        )

    return nn.Sequential(
        stage(1, 24), stage(24, 48), stage(48, 64), nn.Flatten(), nn.Linear(64 * 16, KINDS)
    )


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = seen = 0
    for x, y in loader:
        p = sum(model(v).softmax(1) for v in views(x))
        right += (p.argmax(1) == y).sum().item()
        seen += len(y)
    model.train()
    counts = torch.tensor([right, seen])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(55)
    train, test = nebulae(960, 55), nebulae(640, 56)
    sampler = DistributedSampler(train, seed=55)
    train_loader = DataLoader(train, batch_size=24, sampler=sampler)
    share = Subset(test, range(rank, len(test), dist.get_world_size()))
    test_loader = DataLoader(share, batch_size=80)
    model = DDP(build())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(9):
        start = time.time()
        sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = evaluate(model.module, test_loader)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} accuracy {accuracy:.3f}", end=" ")
        dist.barrier()
        if rank == 0:
            print(f"time {time.time() - start:.2f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
