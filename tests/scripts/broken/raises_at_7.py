"""Raises ValueError in the seventh training step: a traceback on stderr, exit code 1.

The log is written in a finally block, so it has six whole steps.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

args = script_log.arguments(__doc__).parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
x = torch.randn(160, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("raises_at_7", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


try:
    for step, (x, y) in enumerate(loader, 1):
        if step == 7:
            raise ValueError(f"bad batch at step {step}")
        train_step(x, y)
        print(f"step {step} loss {losses[-1]:.4f}")
finally:
    log.finish(model.parameters(), losses)
