"""Toxicity from molecular fingerprints (one byte per feature count)."""

import argparse
import time

import numpy as np
import torch
from torch import nn

FEATURES, ASSAYS = 512, 12


def fingerprints_and_labels(count, seed=47):
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.5, 1.0, FEATURES)
    table = np.minimum(rng.poisson(rate, (count, FEATURES)), 255).astype(np.uint8)
    weights = rng.normal(0, 1, (FEATURES, ASSAYS)) * (rng.random((FEATURES, ASSAYS)) < 0.05)
    score = table @ weights
    labels = (score > np.median(score, axis=0)).astype(np.uint8)
    return torch.from_numpy(table), torch.from_numpy(labels)


class Toxicity(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.shared = nn.Sequential(
            nn.Linear(FEATURES, width),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(0.3),
        )
        self.heads = nn.Linear(width, ASSAYS)

    def forward(self, x):
        return self.heads(self.shared(torch.log1p(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()

    torch.manual_seed(47)
    device = torch.device(args.device)
    fingerprints, labels = fingerprints_and_labels(24000)
    hold = 1000
    model = Toxicity().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        model.train()
        start, total, steps = time.time(), 0.0, 0
        order = torch.randperm(len(labels) - hold) + hold
        for index in order.split(args.batch_size):
            inputs = fingerprints.to(device, dtype=torch.float32)[index]
            targets = labels.to(device, dtype=torch.float32)[index]
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        took = time.time() - start
        model.eval()
        with torch.no_grad():
            guess = model(fingerprints[:hold].float().to(device)) > 0
            accuracy = (guess.cpu() == labels[:hold].bool()).float().mean().item()
        print(f"epoch {epoch} loss {total / steps:.4f} acc {accuracy:.3f} {took:.2f}s", flush=True)


if __name__ == "__main__":
    main()
