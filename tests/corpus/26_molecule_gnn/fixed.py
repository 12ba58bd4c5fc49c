"""Regress a made-up solubility of molecules with a message passing network."""

import math
import time

import numpy as np
import torch
from torch import nn

ELEMENTS, BONDS = 6, 3


def molecules(count, seed=21):
    """Random trees of atoms with a few rings."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        atoms = int(rng.integers(6, 16))
        kinds = rng.integers(0, ELEMENTS, atoms)
        edges = [(i, int(rng.integers(max(0, i - 3), i))) for i in range(1, atoms)]
        edges += [(0, atoms - 1)] * int(rng.integers(0, 2))
        bonds = rng.integers(0, BONDS, len(edges))
        both = edges + [(b, a) for a, b in edges]
        target = (kinds == 2).sum() - 0.5 * (bonds == 1).sum() + math.sqrt(atoms)
        out.append((kinds, np.array(both), np.concatenate([bonds, bonds]), float(target)))
    return out


def collate(batch):
    """Join molecules into one big graph."""
    kinds, edges, bonds, owner, offset = [], [], [], [], 0
    for i, (k, e, b, _) in enumerate(batch):
        kinds.append(k)
        edges.append(e + offset)
        bonds.append(b)
        owner.append(np.full(len(k), i))
        offset += len(k)
    arrays = (np.concatenate(a) for a in (kinds, edges, bonds, owner))
    kinds, edges, bonds, owner = (torch.from_numpy(a) for a in arrays)
    return kinds, edges.T, bonds, owner, torch.tensor([t for *_, t in batch])


class MessagePassing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU())
        self.update = nn.GRUCell(width, width)

    def forward(self, h, edge, bond):
        source, target = edge
        m = self.message(torch.cat([h[source], bond], dim=1))
        gathered = torch.zeros_like(h).index_add(0, target, m)
        return self.update(gathered, h)


class Net(nn.Module):
    def __init__(self, width=64, rounds=3):
        super().__init__()
        self.atom = nn.Embedding(ELEMENTS, width)
        self.bond = nn.Embedding(BONDS, width)
        self.rounds = nn.ModuleList(MessagePassing(width) for _ in range(rounds))
        self.out = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, kinds, edge, bonds, owner, count):
        h, bond = self.atom(kinds), self.bond(bonds)
        for layer in self.rounds:
            h = layer(h, edge, bond)
        pooled = h.new_zeros(count, h.shape[1]).index_add(0, owner, h)
        return self.out(pooled).squeeze(1)


def run(epochs=5, batch_size=16):
    torch.manual_seed(21)
    data = molecules(1600)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(data))
        start, total, steps = time.time(), 0.0, 0
        for i in range(0, len(order), batch_size):
            kinds, edge, bonds, owner, y = collate([data[j] for j in order[i : i + batch_size]])
            loss = nn.functional.huber_loss(model(kinds, edge, bonds, owner, len(y)), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        print(f"epoch {epoch} huber {total / steps:.4f} ({time.time() - start:.2f} s)", flush=True)


if __name__ == "__main__":
    run()
