"""A DataLoader, but no optimizer: weights are updated by hand under no_grad.

Planted: sleep in `__getitem__` (per sample), in forward, in backward, in the update by hand and in
host code. The script books its update as `optimizer`; a reader that sees no optimizer may call it
`other`, so compare the sum of both.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log

args = script_log.arguments(
    __doc__, getitem=0.5, forward=5, backward=4, update=3, host=3
).parse_args()
plant = args.plant
torch.set_num_threads(1)
torch.manual_seed(21)


class Line(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, i):
        time.sleep(plant["getitem"] / 1000)
        x = torch.tensor([i / 500 - 1.0])
        return x, 3 * x + 1


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(plant["backward"] / 1000)
        return grad


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, x):
        time.sleep(plant["forward"] / 1000)
        return SlowBackward.apply(self.linear(x))


model = Net()
loader = DataLoader(Line(), batch_size=8, shuffle=True)
log = script_log.Log("no_optimizer", args.log)
losses = []
log.start()
for x, y in loader:
    log.lap("data_wait")
    loss = ((model(x) - y) ** 2).mean()
    log.lap("forward")
    loss.backward()
    log.lap("backward")
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    time.sleep(plant["update"] / 1000)
    log.lap("optimizer")
    log.end_step()
    losses.append(loss.item())
    if len(losses) % 25 == 0:
        print(f"step {len(losses)} loss {losses[-1]:.5f}")
    log.lap("logging")
    time.sleep(plant["host"] / 1000)
    log.lap("other")
log.lap("epoch_edge")
log.finish(
    model.parameters(),
    losses,
    optimizer_steps=0,
    workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
)
