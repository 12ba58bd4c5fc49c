"""Trains until Ctrl-C, then cleans up. Prints READY once three steps are done.

By default the KeyboardInterrupt goes on, and Python dies of SIGINT, as any plain script does;
with `--code N` the script ends with that exit code instead. It gives up after `--limit` seconds
with exit code 9. The log has the fact that the clean-up ran.
"""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

parser = script_log.arguments(__doc__)
parser.add_argument("--code", type=int)
parser.add_argument("--limit", type=float, default=60)
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
x = torch.randn(160, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("interrupt", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


begin = time.monotonic()
try:
    while time.monotonic() - begin < args.limit:
        for x, y in loader:
            train_step(x, y)
            time.sleep(0.02)
            if len(losses) == 3:
                print("READY", flush=True)
    sys.exit(9)
except KeyboardInterrupt:
    print("interrupted: saving", flush=True)
    log.finish(model.parameters(), losses, cleaned_up=True)
    if args.code is not None:
        sys.exit(args.code)
    raise
