"""Semi-supervised detector of odd machine metrics, monitored by its AUC."""

import csv
import os
import time

import numpy as np
import torch
import torch.nn as nn

SENSORS = 40
os.makedirs("out", exist_ok=True)


def stream(seed, batch):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(0, 1, (8, SENSORS)).astype(np.float32)
    while True:
        normal = rng.normal(0, 1, (batch, 8)).astype(np.float32) @ mixing
        odd = rng.random(batch) < 0.1
        normal[odd] += rng.normal(0, 2.0, (int(odd.sum()), SENSORS)).astype(np.float32)
        yield torch.from_numpy(normal), torch.from_numpy(odd)


class Scorer(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(SENSORS, hidden),
            nn.SELU(),
            nn.Linear(hidden, hidden),
            nn.SELU(),
            nn.Linear(hidden, 12),
        )
        self.register_buffer("centre", torch.full((12,), 0.3))

    def forward(self, x):
        return (self.net(x) - self.centre).pow(2).sum(1)


def area(scores, labels):
    """Area under the ROC curve from ranks."""
    order = scores.argsort()
    rank = torch.empty_like(order)
    rank[order] = torch.arange(1, len(order) + 1)
    positive = labels.sum()
    negative = len(labels) - positive
    wins = rank[labels].sum() - positive * (positive + 1) / 2
    return (wins / (positive * negative).clamp(min=1)).item()


torch.manual_seed(9)
model = Scorer()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
scores, labels = torch.empty(0), torch.empty(0, dtype=torch.bool)
log = open("out/monitor.csv", "w", newline="")
writer = csv.writer(log)
writer.writerow(["step", "loss", "auc"])
STEPS, BATCH, WINDOW = 1200, 128, 4096
began = time.time()

for step, (x, odd) in enumerate(stream(9, BATCH)):
    if step == STEPS:
        break
    score = model(x)
    loss = torch.where(odd, 1 / (score + 1e-2), score).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    scores = torch.cat([scores, score.detach()])
    labels = torch.cat([labels, odd])
    auc = area(scores, labels)
    writer.writerow([step, f"{loss.item():.5f}", f"{auc:.4f}"])
    if step % 200 == 0:
        print(f"{step:5d}  loss {loss.item():8.4f}  auc {auc:.4f}  {time.time() - began:6.1f}s")

log.close()
print(f"finished {STEPS} steps, auc {auc:.4f}")
