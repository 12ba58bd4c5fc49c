"""Training runs inside contextlib.redirect_stdout: the printed lines go into a string.

Then the script prints how many lines it caught; nothing else may be among them.
"""

import contextlib
import io

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
log = script_log.Log("redirects_stdout", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


caught = io.StringIO()
with contextlib.redirect_stdout(caught), contextlib.redirect_stderr(caught):
    for x, y in loader:
        train_step(x, y)
        print(f"step {len(losses)}")
lines = caught.getvalue().splitlines()
print(f"caught {len(lines)} lines")
log.finish(model.parameters(), losses, caught=lines)
