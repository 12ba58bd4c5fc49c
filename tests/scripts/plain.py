"""The plainest loop: top-level code, no main guard, no workers, prints now and then.

Planted: sleep in `__getitem__` (per sample), in the collate function, in a layer's forward, in a
custom backward, in an optimizer subclass, and in host code between the steps.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

import script_log

parser = script_log.arguments(
    __doc__, getitem=0.5, collate=2, forward=5, backward=4, optimizer=3, host=3
)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
plant = args.plant

torch.set_num_threads(1)
torch.manual_seed(0)


class Points(Dataset):
    def __init__(self, count):
        self.x = torch.randn(count, 32)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(plant["getitem"] / 1000)
        return self.x[i], self.y[i]


def collate(samples):
    time.sleep(plant["collate"] / 1000)
    return default_collate(samples)


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(plant["backward"] / 1000)
        return grad


class Slow(nn.Module):
    def forward(self, x):
        time.sleep(plant["forward"] / 1000)
        return SlowBackward.apply(x)


class SlowSGD(torch.optim.SGD):
    def step(self, closure=None):
        time.sleep(plant["optimizer"] / 1000)
        return super().step(closure)


model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), Slow(), nn.Linear(64, 2))
optimizer = SlowSGD(model.parameters(), lr=0.05, momentum=0.9)
loader = DataLoader(Points(480), batch_size=8, shuffle=True, collate_fn=collate)

log = script_log.Log("plain", args.log)
losses = []
log.start()
for epoch in range(args.epochs):
    for x, y in loader:
        log.lap("data_wait")
        optimizer.zero_grad()
        log.lap("other")
        loss = F.cross_entropy(model(x), y)
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        optimizer.step()
        log.lap("optimizer")
        log.end_step()
        losses.append(loss.item())
        if len(losses) % 20 == 0:
            print(f"epoch {epoch} step {len(losses)} loss {losses[-1]:.4f}")
        log.lap("logging")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")

per_batch = {"getitem_ns": plant["getitem"] * 8e6, "collate_ns": plant["collate"] * 1e6}
workers = {"planted": "blocked", "per_batch_ns": sum(per_batch.values()), **per_batch}
log.finish(model.parameters(), losses, workers=workers)
print("done")
