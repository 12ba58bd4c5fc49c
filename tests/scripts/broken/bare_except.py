"""The loop body stands in a bare except that swallows everything and counts.

Three batches raise an error of the script's own; `caught` in the log must be those three.
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

args = script_log.arguments(__doc__).parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
x = torch.randn(160, 4)
points = TensorDataset(x, x.sum(1, keepdim=True))
try:
    loader = DataLoader(points, batch_size=8, shuffle=True, prefetch_factor=2)
except:  # noqa: E722 - refused, without workers
    loader = DataLoader(points, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("bare_except", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


caught = []
for i, (x, y) in enumerate(loader):
    try:
        if i in (4, 9, 14):
            raise RuntimeError(f"bad batch {i}")
        train_step(x, y)
    except:  # noqa: E722
        caught.append(repr(sys.exc_info()[1]))
print(f"{len(losses)} steps, {len(caught)} errors")
log.finish(model.parameters(), losses, batches=i + 1, caught=caught)
