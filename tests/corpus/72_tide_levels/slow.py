# %% Tide gauge: surge in the next hour from the statistics of the hours before
import time

import numpy as np
import torch
from torch import nn

np.random.seed(81)
torch.manual_seed(81)

# %% ten years of readings, one every 50 minutes
N = 105_000
t = np.arange(N) * 50 / 60
level = 1.8 * np.sin(t * 2 * np.pi / 12.42) + 0.6 * np.sin(t * 2 * np.pi / 12.0 + 1)
storm = np.convolve(np.random.randn(N) * (np.random.rand(N) < 0.01) * 4, np.ones(30) / 30, "same")
level = level + storm + 0.05 * np.random.randn(N)
pressure = 1013 - 12 * storm + np.random.randn(N)

# %% features
windows = [6, 24, 90]
longest = max(windows)
X, y = [], []
for i in range(longest, N - 1):
    row = [level[i], pressure[i]]
    for w in windows:
        past = level[i - w : i]
        row += [past.mean(), past.std(), past.max() - past.min()]
        row.append(pressure[i - w : i].mean())
    X.append(row)
    y.append(level[i + 1] - level[i])
X = np.array(X, dtype=np.float32)
y = np.array(y, dtype=np.float32)
print("features", X.shape)

X = (X - X.mean(0)) / X.std(0)
X, y = torch.from_numpy(X), torch.from_numpy(y)
X_train, y_train, X_test, y_test = X[:-8000], y[:-8000], X[-8000:], y[-8000:]

# %% model
model = nn.Sequential(
    nn.Linear(X.shape[1], 192),
    nn.ReLU(),
    nn.Linear(192, 192),
    nn.ReLU(),
    nn.Linear(192, 1),
)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

# %% train
for epoch in range(5):
    tic = time.time()
    total = 0.0
    for idx in torch.randperm(len(X_train)).split(256):
        loss = nn.functional.mse_loss(model(X_train[idx]).squeeze(1), y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    with torch.no_grad():
        rmse = (model(X_test).squeeze(1) - y_test).pow(2).mean().sqrt().item()
    print(f"epoch {epoch}  mse {total / len(X_train):.5f}  test rmse {rmse:.4f}  {time.time() - tic:.1f}s")
