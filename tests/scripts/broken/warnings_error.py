"""To be run with `python -W error`: any warning is an error; nothing may come on stderr.

Two forked workers, an evaluation and a checkpoint besides the training.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

args = script_log.arguments(__doc__).parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
x = torch.randn(160, 4)
loader = DataLoader(
    TensorDataset(x, x.sum(1, keepdim=True)),
    batch_size=8,
    shuffle=True,
    num_workers=2,
    multiprocessing_context="fork",
)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("warnings_error", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


for _ in range(2):
    for x, y in loader:
        train_step(x, y)
    model.eval()
    with torch.no_grad():
        score = sum(nn.functional.mse_loss(model(x), y).item() for x, y in loader)
    model.train()
    torch.save(model.state_dict(), os.path.join(script_log.folder(args.out), "model.pt"))
    print(f"loss {losses[-1]:.4f} score {score:.4f}")
log.finish(model.parameters(), losses)
