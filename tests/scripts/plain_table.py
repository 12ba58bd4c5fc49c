"""A table in memory: nothing in its numbers depends on how batches are fetched.

`--workers` for the loader. The script asks for zeros in `zero_grad`, and evaluates with gradients.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

parser = script_log.arguments(__doc__, host=1)
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(4)
x = torch.randn(480, 12)
loader = DataLoader(
    TensorDataset(x, (x[:, 0] > 0).long()), batch_size=12, shuffle=True, num_workers=args.workers
)
model = nn.Sequential(nn.Linear(12, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
log = script_log.Log("plain_table", args.log)
losses, scores = [], []
log.start()
for _epoch in range(3):
    model.train()
    for xb, yb in loader:
        log.lap("data_wait")
        optimizer.zero_grad(set_to_none=False)
        log.lap("other")
        loss = nn.functional.cross_entropy(model(xb), yb)
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        optimizer.step()
        log.lap("optimizer")
        log.end_step()
        losses.append(loss.item())
        time.sleep(args.plant["host"] / 1000)
        log.lap("other")
    model.eval()
    scores.append(float(model(x).detach().mean()))
    log.lap("evaluation")
log.finish(model.parameters(), losses, scores=scores)
