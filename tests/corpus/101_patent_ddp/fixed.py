"""Which patent will be cited next, given ten that are cited already? Two ranks, gloo.

torchrun --nproc-per-node 2 slow.py
"""

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def document_vectors(fields, per_field, width, seed=123):
    """Vectors of all patents from an older language model; field = index % fields."""
    g = torch.Generator().manual_seed(seed)
    centres = torch.randn(fields, width, generator=g)
    noise = torch.randn(per_field, fields, width, generator=g)
    return (centres + 0.9 * noise).flatten(0, 1)


class Citations:
    """Endless random citation lists; all patents of a list are of one field."""

    def __init__(self, fields, per_field, seed):
        self.fields, self.per_field = fields, per_field
        self.generator = torch.Generator().manual_seed(seed)

    def batch(self, size, known=10):
        field = torch.randint(self.fields, (size, 1), generator=self.generator)
        number = torch.randint(self.per_field, (size, known + 1), generator=self.generator)
        ids = field + self.fields * number
        return ids[:, :-1], ids[:, -1]


class CitationModel(nn.Module):
    def __init__(self, vectors, hidden=768):
        super().__init__()
        width = vectors.shape[1]
        self.register_buffer("vectors", vectors)
        self.mix = nn.Sequential(
            nn.Linear(width, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, width),
        )

    def forward(self, known, wanted):
        asked = self.mix(self.vectors[known].mean(1))
        offered = self.vectors[wanted]
        return 20 * F.normalize(asked, dim=1) @ F.normalize(offered, dim=1).T


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fields", type=int, default=400)
    parser.add_argument("--per-field", type=int, default=150)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--epochs", type=int, default=5)
    return parser.parse_args()


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(123)
    vectors = document_vectors(args.fields, args.per_field, args.width)
    citations = Citations(args.fields, args.per_field, 1000 + rank)
    model = DistributedDataParallel(CitationModel(vectors), forward_sync_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        start, total = time.time(), 0.0
        for _ in range(args.steps):
            known, wanted = citations.batch(args.batch)
            scores = model(known, wanted)
            loss = F.cross_entropy(scores, torch.arange(args.batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        took = time.time() - start
        if rank == 0:
            print(f"epoch {epoch} loss {total / args.steps:.3f} took {took:.2f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
