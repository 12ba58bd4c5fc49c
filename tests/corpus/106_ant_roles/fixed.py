"""Roles of ants (nurse, forager, cleaner, guard) from who met whom: graph attention network."""

import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Colonies:
    """Contact networks of many colonies of the same size."""

    def __init__(self, n_colonies, n_ants, n_features=12, seed=0):
        rng = np.random.default_rng(seed)
        self.role = torch.from_numpy(rng.integers(0, 4, (n_colonies, n_ants)))
        same = self.role[:, :, None] == self.role[:, None, :]
        chance = torch.where(same, 0.15, 0.03).numpy()
        meet = rng.random(chance.shape) < chance
        meet = np.triu(meet, 1)
        meet = meet | meet.transpose(0, 2, 1) | np.eye(n_ants, dtype=bool)
        self.adj = torch.from_numpy(meet)
        x = rng.normal(size=(n_colonies, n_ants, n_features)).astype(np.float32)
        x[..., :4] += 0.7 * np.eye(4, dtype=np.float32)[self.role.numpy()]
        self.x = torch.from_numpy(x)

    def batches(self, size, rng):
        order = rng.permutation(len(self.x))
        for k in range(0, len(order) - size + 1, size):
            idx = torch.from_numpy(order[k : k + size])
            yield self.x[idx], self.adj[idx], self.role[idx]


class GraphAttention(nn.Module):
    def __init__(self, n_in, n_out, slope=0.2):
        super().__init__()
        self.W = nn.Linear(n_in, n_out, bias=False)
        self.a = nn.Parameter(torch.empty(2 * n_out, 1))
        nn.init.xavier_uniform_(self.a)
        self.slope = slope

    def scores(self, h):
        d = h.shape[-1]
        left = h @ self.a[:d]
        right = h @ self.a[d:]
        return F.leaky_relu(left + right.transpose(1, 2), self.slope)

    def forward(self, x, adj):
        h = self.W(x)
        e = self.scores(h).masked_fill(~adj, -1e9)
        return torch.softmax(e, dim=-1) @ h


class GAT(nn.Module):
    def __init__(self, n_in, hidden, heads, n_classes):
        super().__init__()
        self.first = nn.ModuleList([GraphAttention(n_in, hidden) for _ in range(heads)])
        self.second = nn.ModuleList([GraphAttention(hidden * heads, hidden) for _ in range(heads)])
        self.ffn = nn.Sequential(
            nn.Linear(hidden * heads, 1024), nn.ReLU(), nn.Linear(1024, n_classes)
        )

    def forward(self, x, adj):
        x = F.elu(torch.cat([att(x, adj) for att in self.first], dim=-1))
        x = F.elu(torch.cat([att(x, adj) for att in self.second], dim=-1))
        return self.ffn(x)


class Trainer:
    def __init__(self, colonies, epochs=9, batch_size=8, lr=3e-3):
        self.colonies, self.epochs, self.batch_size = colonies, epochs, batch_size
        self.model = GAT(12, 24, 4, 4)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr, weight_decay=5e-4)
        self.rng = np.random.default_rng(1)

    def train_epoch(self):
        total, correct, count = 0.0, 0, 0
        for x, adj, role in self.colonies.batches(self.batch_size, self.rng):
            out = self.model(x, adj)
            loss = F.cross_entropy(out.flatten(0, 1), role.flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * role.numel()
            correct += (out.argmax(-1) == role).sum().item()
            count += role.numel()
        return total / count, correct / count

    def fit(self):
        for epoch in range(self.epochs):
            begin = time.time()
            loss, acc = self.train_epoch()
            print(
                f"Epoch {epoch:02d} loss {loss:.4f} acc {acc:.4f} ({time.time() - begin:.2f} s)",
                flush=True,
            )


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(Colonies(160, 90)).fit()
