# Income prediction, exported from a notebook.
import random
import time

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(7)
np.random.seed(7)
random.seed(7)

# ---- data -----------------------------------------------------------------
N = 40_000
cardinalities = [9, 16, 7, 15, 6, 5, 2, 42]
rng = np.random.default_rng(7)
cats = np.stack([rng.integers(0, c, N) for c in cardinalities], axis=1)
nums = rng.normal(size=(N, 6)).astype("float32")
logit = nums[:, 0] - 0.5 * nums[:, 3] + 0.2 * (cats[:, 1] % 5) - 0.4
target = (rng.random(N) < 1 / (1 + np.exp(-logit))).astype("float32")

split = int(N * 0.85)
train_cat, valid_cat = torch.tensor(cats[:split]), torch.tensor(cats[split:])
train_num, valid_num = torch.tensor(nums[:split]), torch.tensor(nums[split:])
train_y, valid_y = torch.tensor(target[:split]), torch.tensor(target[split:])

BATCH = 256


def batches():
    order = torch.randperm(len(train_y))
    for i in range(0, len(order) - BATCH + 1, BATCH):
        idx = order[i : i + BATCH]
        yield train_cat[idx], train_num[idx], train_y[idx]


# ---- model ----------------------------------------------------------------
class TabularModel(nn.Module):
    def __init__(self, cards, n_num, hidden=(200, 100), p=0.1):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(c, min(50, (c + 1) // 2 + 2)) for c in cards])
        width = sum(e.embedding_dim for e in self.embs)
        self.bn = nn.BatchNorm1d(n_num)
        layers, last = [], width + n_num
        for h in hidden:
            layers += [nn.Linear(last, h), nn.ReLU(), nn.BatchNorm1d(h), nn.Dropout(p)]
            last = h
        self.layers = nn.Sequential(*layers, nn.Linear(last, 1))

    def forward(self, cat, num):
        x = [e(cat[:, i]) for i, e in enumerate(self.embs)]
        x = torch.cat([*x, self.bn(num)], dim=1)
        return self.layers(x).squeeze(1)


model = TabularModel(cardinalities, 6)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=14)

# ---- training ---------------------------------------------------------------
EPOCHS = 14
best = 0.0
for epoch in range(EPOCHS):
    t0 = time.perf_counter()
    model.train()
    total = 0.0
    for cat, num, target in batches():
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(cat, num), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    seconds = time.perf_counter() - t0

    model.eval()
    with torch.no_grad():
        prob = torch.sigmoid(model(valid_cat, valid_num))
    acc = ((prob > 0.5).float() == valid_y).float().mean().item()
    best = max(best, acc)
    total /= split // BATCH
    print(f"epoch {epoch:2d}  loss {total:.4f}  valid acc {acc:.4f}  ({seconds:.2f} s)")

print("best", round(best, 4))
