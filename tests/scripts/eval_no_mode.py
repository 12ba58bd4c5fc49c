"""Evaluation under no_grad, but nobody calls `model.eval()`.

Every 50 steps, in the middle of an epoch, the validation loader is gone through. Planted: sleep in
`__getitem__` (per sample), in forward (also in evaluation), in the optimizer and in host code.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

args = script_log.arguments(__doc__, getitem=0.5, forward=6, optimizer=4, host=3).parse_args()
plant = args.plant
torch.set_num_threads(1)
torch.manual_seed(8)


class Table(TensorDataset):
    def __getitem__(self, i):
        time.sleep(plant["getitem"] / 1000)
        return super().__getitem__(i)


class SlowIdentity(nn.Module):
    def forward(self, x):
        time.sleep(plant["forward"] / 1000)
        return x


class SlowAdam(torch.optim.Adam):
    def step(self, closure=None):
        time.sleep(plant["optimizer"] / 1000)
        return super().step(closure)


x = torch.randn(720, 20)
y = (x[:, :1] * x[:, 1:2] > 0).float()
train_loader = DataLoader(Table(x[:600], y[:600]), batch_size=8, shuffle=True)
valid_loader = DataLoader(Table(x[600:], y[600:]), batch_size=8)
model = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), SlowIdentity(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = SlowAdam(model.parameters(), lr=0.01)
log = script_log.Log("eval_no_mode", args.log)
losses, valid = [], []
log.start()
for _epoch in range(2):
    for xb, yb in train_loader:
        log.lap("data_wait")
        optimizer.zero_grad()
        log.lap("other")
        loss = criterion(model(xb), yb)
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        optimizer.step()
        log.lap("optimizer")
        log.end_step()
        losses.append(loss.item())
        time.sleep(plant["host"] / 1000)
        log.lap("other")
        if len(losses) % 50 == 0:
            with torch.no_grad():
                total = 0.0
                for xv, yv in valid_loader:
                    total += criterion(model(xv), yv).item()
            log.lap("evaluation")
            valid.append(total / len(valid_loader))
            print(f"step {len(losses)}: train {losses[-1]:.4f} valid {valid[-1]:.4f}")
            log.lap("logging")
    log.lap("epoch_edge")
log.finish(
    model.parameters(),
    losses,
    scores=valid,
    evaluation_batches=len(valid) * len(valid_loader),
    workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
)
