"""Raises inside of what torch calls, place after place, prints each traceback, and trains on.

In an item or in collate (with `--workers` in another process), in a forward below another forward,
in the backward of a function, in an optimizer's step, while a checkpoint is pickled, while a tensor
is read, and in what is printed. The last error, in a forward, is not caught: exit code 1.
"""

import gc
import os
import sys
import traceback

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

import script_log

PLACES = ("item", "collate", "forward", "backward", "optimizer", "save", "read", "print")
parser = script_log.arguments(__doc__)
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
losses = []
here = None


def perhaps(where):
    if where == here:
        raise ArithmeticError(f"no good {where}")


class Items(TensorDataset):
    def __getitem__(self, i):
        perhaps("item")
        return super().__getitem__(i)


def collate(samples):
    perhaps("collate")
    return default_collate(samples)


class Passed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        perhaps("backward")
        return grad


class Inner(nn.Linear):
    def forward(self, x):
        perhaps("forward")
        return Passed.apply(super().forward(x))


class Fragile(torch.optim.SGD):
    def step(self, closure=None):
        perhaps("optimizer")
        return super().step(closure)


class Shown:
    def __reduce__(self):
        perhaps("save")
        return (Shown, ())

    def __str__(self):
        perhaps("print")
        return "shown"


x = torch.randn(32, 4)
loader = DataLoader(
    Items(x, x.sum(1, keepdim=True)),
    batch_size=8,
    shuffle=True,
    num_workers=args.workers,
    collate_fn=collate,
    multiprocessing_context="fork" if args.workers else None,
)
model = nn.Sequential(nn.Linear(4, 16), nn.Sequential(nn.ReLU(), Inner(16, 1)))
optimizer = Fragile(model.parameters(), lr=0.05)
log = script_log.Log("raises_inside", args.log)
folder = script_log.folder(args.out)


def epoch():
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        log.lap("other")
        log.end_step()
        losses.append(loss.item())
    torch.save({"model": model.state_dict(), "shown": Shown()}, os.path.join(folder, "m.pt"))
    print(Shown(), f"{loss.item():.4f}", flush=True)
    if here == "read":
        torch.zeros(2).item()


# An iterator with workers that is collected late, in a forked worker, complains on stderr with any
# torch; when that happens depends on how many objects there are.
gc.disable()
for place in (None, *PLACES):
    gc.collect()
    here = place
    try:
        epoch()
    except Exception:
        print(f"in {place}:", file=sys.stderr, flush=True)
        traceback.print_exc()
here = None
epoch()
log.finish(model.parameters(), losses)
here = "forward"
epoch()
