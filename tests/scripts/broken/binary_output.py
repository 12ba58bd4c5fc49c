"""Writes bytes that are no text to stdout and stderr, 64 KiB and 4 KiB a step.

The log has the SHA-256 of all that was written to each.
"""

import hashlib
import random
import sys

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
log = script_log.Log("binary_output", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


source = random.Random(7)
written = {"stdout": hashlib.sha256(), "stderr": hashlib.sha256()}
for x, y in loader:
    train_step(x, y)
    for stream, name, count in ((sys.stdout, "stdout", 65536), (sys.stderr, "stderr", 4096)):
        block = source.randbytes(count)
        stream.buffer.write(block)
        stream.buffer.flush()
        written[name].update(block)
log.finish(
    model.parameters(),
    losses,
    **{f"{name}_sha256": found.hexdigest() for name, found in written.items()},
)
