"""Is killed by SIGKILL after five steps; the log was written just before.

`--signal NAME` takes another one, such as SIGTERM or SIGSEGV.
"""

import os
import signal

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

parser = script_log.arguments(__doc__)
parser.add_argument("--signal", default="SIGKILL")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
x = torch.randn(160, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("kill_self", args.log)
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
    print(f"step {len(losses)} loss {losses[-1]:.4f}", flush=True)
    if len(losses) == 5:
        log.finish(model.parameters(), losses)
        os.kill(os.getpid(), getattr(signal, args.signal))
