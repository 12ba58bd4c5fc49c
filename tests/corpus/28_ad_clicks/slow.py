"""Click-through rate with one small tower for each feature column."""

import time

import numpy as np
import torch
from torch import nn

COLUMNS, VALUES, DIM = 230, 40, 4
ROWS, BATCH, EPOCHS = 16_000, 64, 2


def impressions(seed=17):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, VALUES, (ROWS, COLUMNS))
    score = (codes[:, :5] % 7 == 0).sum(1) - 1.2 + 0.3 * (codes[:, 9] > 20)
    click = rng.random(ROWS) < 1 / (1 + np.exp(-score))
    return torch.from_numpy(codes), torch.from_numpy(click.astype(np.float32))


class Column(nn.Module):
    """Embedding of one column and a gain of its own."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VALUES, DIM) * 0.05)
        self.gain = nn.Parameter(torch.ones(DIM))
        self.bias = nn.Parameter(torch.zeros(DIM))


class WideAndDeep(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.columns = nn.ModuleList(Column() for _ in range(COLUMNS))
        self.deep = nn.Sequential(
            nn.Linear(COLUMNS * DIM, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )
        self.wide = nn.Linear(COLUMNS * DIM, 1)
        self.register_buffer("offset", torch.arange(COLUMNS) * VALUES)

    def forward(self, codes):
        tables = torch.cat([c.table for c in self.columns])
        gain = torch.stack([c.gain for c in self.columns])
        bias = torch.stack([c.bias for c in self.columns])
        e = nn.functional.embedding(codes + self.offset, tables)
        x = (e * gain + bias).flatten(1)
        return (self.deep(x) + self.wide(x)).squeeze(1)


def log_loss(model, codes, click):
    with torch.no_grad():
        return nn.functional.binary_cross_entropy_with_logits(model(codes), click).item()


def main():
    torch.manual_seed(17)
    codes, click = impressions()
    hold = 1000
    model = WideAndDeep()
    print(sum(p.numel() for p in model.parameters()), "weights")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4, foreach=False)
    for epoch in range(EPOCHS):
        tick = time.perf_counter()
        for index in (torch.randperm(ROWS - hold) + hold).split(BATCH):
            out = model(codes[index])
            loss = nn.functional.binary_cross_entropy_with_logits(out, click[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds = time.perf_counter() - tick
        valid = log_loss(model, codes[:hold], click[:hold])
        print(f"epoch {epoch} valid log loss {valid:.4f} time {seconds:.1f}", flush=True)


if __name__ == "__main__":
    main()
