"""Puts objects of its own in place of sys.stdout and sys.stderr, and leaves them there.

The objects have only `write` and `flush`: no fileno, no encoding, no buffer. The log has all
that came.
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
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("replaces_stdout", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


class Bare:
    def __init__(self, target):
        self.target = target
        self.seen = []

    def write(self, text):
        self.seen.append(text)
        self.target.write(text)

    def flush(self):
        self.target.flush()


out, err = sys.stdout, sys.stderr
sys.stdout, sys.stderr = Bare(out), Bare(err)
for x, y in loader:
    train_step(x, y)
    print(f"step {len(losses)} loss {losses[-1]:.4f}")
log.finish(
    model.parameters(),
    losses,
    stdout="".join(sys.stdout.seen),
    stderr="".join(sys.stderr.seen),
)
