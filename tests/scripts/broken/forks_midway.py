"""Forks itself in the middle of the training; the child uses the model and leaves.

With `--child hard` (default) the child ends with os._exit, with `soft` it ends as a program does,
with atexit and all. The parent trains on. The child's answer comes back through a pipe.
"""

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

parser = script_log.arguments(__doc__)
parser.add_argument("--child", choices=["hard", "soft"], default="hard")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
x = torch.randn(160, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("forks_midway", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


answer = None
for x, y in loader:
    train_step(x, y)
    if len(losses) == 10:
        sys.stdout.flush()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            os.write(writer, f"{loss.item():.6f}".encode())
            if args.child == "hard":
                os._exit(5)
            sys.exit(5)
        os.close(writer)
        answer = os.read(reader, 100).decode()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(f"child said {answer} and exited with {code}; loss {losses[-1]:.4f}")
log.finish(model.parameters(), losses, child_answer=answer, child_code=code)
