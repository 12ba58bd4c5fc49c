"""Closes stderr after three steps: the object, or with `--how descriptor` file 2 itself.

In the second case a file that the script opens next becomes file 2: whoever writes to file 2 then
writes into the user's data. `intact` in the log says whether the file has just what was written.
"""

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

parser = script_log.arguments(__doc__)
parser.add_argument("--how", choices=["object", "descriptor"], default="object")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
x = torch.randn(160, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("closes_stderr", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


folder = script_log.folder(args.out)
path = os.path.join(folder, "notes.txt")
notes = None
for x, y in loader:
    train_step(x, y)
    if len(losses) == 3:
        if args.how == "object":
            sys.stderr.close()
        else:
            os.close(2)
        notes = open(path, "w")
    if notes:
        notes.write(f"{len(losses)}\n")
number = notes.fileno()
notes.flush()
with open(path) as file:
    intact = file.read() == "".join(f"{i}\n" for i in range(3, len(losses) + 1))
print(f"file {number}, intact: {intact}")
log.finish(model.parameters(), losses, file_number=number, intact=intact)
