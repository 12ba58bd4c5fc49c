"""Which vessel does a sherd come from? Embeddings of profiles, judged by neighbours."""

import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def profiles(vessels, views, length, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, length)
    waves = np.stack(
        [np.sin(np.pi * k * t) for k in range(1, 13)]
        + [np.cos(np.pi * k * t) for k in range(1, 13)]
    )
    shape = rng.normal(size=(vessels, 24)) / np.tile(np.arange(1, 13), 2)
    curves = np.repeat(shape @ waves, views, axis=0)
    curves += rng.normal(0, 0.35, curves.shape) + rng.normal(0, 0.2, (len(curves), 1))
    labels = np.repeat(np.arange(vessels), views)
    return torch.from_numpy(curves.astype(np.float32)), torch.from_numpy(labels)


class Encoder(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 24, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(24, 48, 5, stride=2, padding=2),
            nn.ReLU(),
        )
        self.fc = nn.Linear(48 * length // 4, dim)

    def forward(self, x):
        return F.normalize(self.fc(self.conv(x[:, None]).flatten(1)), dim=1)


@torch.no_grad()
def embed(model, x, size=500):
    model.eval()
    return torch.cat([model(part) for part in x.split(size)])


def knn_accuracy(model, gallery, gallery_labels, queries, query_labels, k=5):
    keys, found = embed(model, gallery), 0
    asked = embed(model, queries)
    for q, label in zip(asked.split(25), query_labels.split(25), strict=True):
        distance = (q[:, None, :] - keys[None, :, :]).pow(2).sum(-1)
        nearest = gallery_labels[distance.topk(k, largest=False).indices]
        found += (nearest.mode(1).values == label).sum().item()
    return found / len(queries)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--vessels", type=int, default=600)
    p.add_argument("--dim", type=int, default=96)
    p.add_argument("--length", type=int, default=96)
    args = p.parse_args()
    torch.manual_seed(12)
    x, y = profiles(args.vessels, 10, args.length, seed=12)
    held = torch.arange(len(x)) % 10 == 0
    gallery, labels, queries, wanted = x[~held], y[~held], x[held], y[held]
    model = Encoder(args.length, args.dim)
    centres = nn.Parameter(F.normalize(torch.randn(args.vessels, args.dim), dim=1))
    optimizer = torch.optim.Adam([*model.parameters(), centres], lr=2e-3)
    for epoch in range(args.epochs):
        start, total = time.time(), 0.0
        model.train()
        order = torch.randperm(len(gallery))
        for rows in order.split(64):
            scores = 16 * model(gallery[rows]) @ F.normalize(centres, dim=1).T
            loss = F.cross_entropy(scores, labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        accuracy = knn_accuracy(model, gallery, labels, queries, wanted)
        total /= len(gallery)
        print(
            f"ep {epoch} loss {total:.3f} knn {accuracy:.3f} t {time.time() - start:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
