#!/usr/bin/env python
# coding: utf-8

# # Smell of mixtures
# What do people say of a mixture of up to twenty aroma compounds? 64 words, each rated 0 to 1.

# In[1]:

import time

import numpy as np
import torch
from torch import nn

torch.manual_seed(117)
COMPOUNDS, WORDS = 512, 64
BATCH, EPOCHS = 32, 4
RATE, PENALTY = 0.02, 1e-5

# In[2]:


def panel(count, seed=117):
    """Shares of the compounds and the panel's mean rating of each word."""
    rng = np.random.default_rng(seed)
    shares = np.zeros((count, COMPOUNDS), np.float32)
    for row in shares:
        parts = rng.choice(COMPOUNDS, rng.integers(3, 20), replace=False)
        row[parts] = rng.dirichlet(np.ones(len(parts)))
    smell = rng.normal(0, 2, (COMPOUNDS, 48))
    taste = rng.normal(0, 1, (48, WORDS))
    rating = 1 / (1 + np.exp(-np.tanh(shares @ smell) @ taste / 2))
    rating = rating + rng.normal(0, 0.05, rating.shape)
    return torch.from_numpy(shares), torch.from_numpy(rating.astype(np.float32))


x, y = panel(2640)
train_x, train_y, test_x, test_y = x[:2240], y[:2240], x[2240:], y[2240:]
print(train_x.shape, test_x.shape)

# In[3]:


def network(width=1536):
    sizes = [COMPOUNDS, width, width, width]
    layers = []
    for inside, outside in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inside, outside), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(width, WORDS))


model = network()
optimizer = torch.optim.SGD(
    model.parameters(), lr=RATE, momentum=0.9, weight_decay=2 * PENALTY
)
criterion = nn.MSELoss()
print(sum(p.numel() for p in model.parameters()) / 1e6, "million weights")

# In[4]:

for epoch in range(EPOCHS):
    t = time.time()
    model.train()
    losses = []
    for rows in torch.randperm(len(train_x)).split(BATCH):
        out = model(train_x[rows])
        error = criterion(out, train_y[rows])
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        losses.append(error.item())
    t = time.time() - t
    model.eval()
    with torch.no_grad():
        test = criterion(model(test_x), test_y).item()
    print(f"epoch {epoch} train {np.mean(losses):.4f} test {test:.4f} took {t:.2f} s", flush=True)

# In[5]:

with torch.no_grad():
    residual = (model(test_x) - test_y).square().mean(0).sqrt()
print("best words:", residual.argsort()[:5].tolist())
