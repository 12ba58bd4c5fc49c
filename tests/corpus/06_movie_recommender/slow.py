"""Rating prediction: r = mu + b_u + b_i + <p_u, q_i>."""

import time

import numpy as np
import torch
import torch.nn as nn

n_users, n_items, dim = 60_000, 25_000, 32
n_ratings = 400_000
batch_size = 512
steps = 700


def ratings():
    rng = np.random.default_rng(11)
    user = rng.integers(0, n_users, n_ratings)
    item = np.minimum(rng.zipf(1.2, n_ratings), n_items) - 1
    taste = rng.normal(0, 0.5, n_users)[user] + rng.normal(0, 0.5, n_items)[item]
    stars = np.clip(np.rint(3.5 + taste + rng.normal(0, 0.5, n_ratings)), 1, 5)
    return (
        torch.from_numpy(user),
        torch.from_numpy(item.astype(np.int64)),
        torch.from_numpy(stars.astype(np.float32)),
    )


class MatrixFactorization(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        self.mean = 3.5
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.05)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(dim=1)
        return self.mean + dot + self.user_bias(u).squeeze(1) + self.item_bias(i).squeeze(1)


def rmse(model, u, i, r):
    with torch.no_grad():
        return (model(u, i) - r).pow(2).mean().sqrt().item()


torch.manual_seed(11)
users, items, stars = ratings()
cut = n_ratings - 20_000
model = MatrixFactorization()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
history = []
start = time.time()
perm = torch.randperm(cut)
for step in range(steps):
    at = step * batch_size % (cut - batch_size)
    index = perm[at : at + batch_size]
    u, i, r = users[index], items[index], stars[index]
    pred = model(u, i)
    loss = nn.functional.mse_loss(pred, r)
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.item())
    if step % 100 == 99:
        mean = sum(history[-100:]) / 100
        print(f"step {step + 1}/{steps} train mse {mean:.3f}", flush=True)

print(f"elapsed {time.time() - start:.1f}")
print("valid rmse", round(rmse(model, users[cut:], items[cut:], stars[cut:]), 4))
