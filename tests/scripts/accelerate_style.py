"""accelerate: `prepare`, `accumulate`, `accelerator.backward`; the loader fetches one batch ahead.

`--accumulate` sets the gradient accumulation. Because of the batch ahead compare totals. Planted:
sleep in `__getitem__` (per sample), in forward, in backward, in the optimizer and in host code.
"""

import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log


class Points(Dataset):
    def __init__(self, ms):
        self.x = torch.randn(960, 16)
        self.ms = ms

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], int(self.x[i].sum() > 0)


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ms):
        ctx.ms = ms
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.ms / 1000)
        return grad, None


class Net(nn.Module):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        time.sleep(self.plant["forward"] / 1000)
        return SlowBackward.apply(self.net(x), self.plant["backward"])


class SlowAdamW(torch.optim.AdamW):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def main():
    parser = script_log.arguments(__doc__, getitem=0.6, forward=5, backward=4, optimizer=6, host=3)
    parser.add_argument("--accumulate", type=int, default=1)
    args = parser.parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    set_seed(20)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.accumulate)
    SlowAdamW.ms = plant["optimizer"]
    model = Net(plant)
    optimizer = SlowAdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Points(plant["getitem"]), batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    log = script_log.Log("accelerate", args.log)
    losses = []
    log.start()
    for x, y in loader:
        log.lap("data_wait")
        with accelerator.accumulate(model):
            log.lap("other")
            loss = nn.functional.cross_entropy(model(x), y)
            log.lap("forward")
            accelerator.backward(loss)
            log.lap("backward")
            optimizer.step()
            if accelerator.sync_gradients:
                log.lap("optimizer")
                log.end_step()
            optimizer.zero_grad()
        log.lap("other")
        losses.append(loss.item())
        if len(losses) % 20 == 0:
            accelerator.print(f"batch {len(losses)} loss {losses[-1]:.4f}")
        log.lap("logging")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")
    log.finish(
        accelerator.unwrap_model(model).parameters(),
        losses,
        batches=len(losses),
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
