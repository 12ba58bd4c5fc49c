"""Ends with os._exit(`--code`, 0 by default) right after the last step: nothing at exit runs."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

parser = script_log.arguments(__doc__)
parser.add_argument("--code", type=int, default=0)
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
x = torch.randn(160, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("os_exit", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


for x, y in loader:
    train_step(x, y)
print(f"loss {losses[-1]:.4f}", flush=True)
log.finish(model.parameters(), losses)
os._exit(args.code)
