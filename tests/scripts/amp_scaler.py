"""Gradient scaling on the CPU: now and then a loss is infinite and the scaler skips the step.

Each batch is an attempt and so a step of the log, with `skipped` true where the optimizer did not
run: 100 batches, 90 optimizer steps by default. Autocast to bfloat16 with `--autocast`. Planted:
sleep in `__getitem__` (per sample), forward, backward, optimizer, host code.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log


class Points(Dataset):
    def __init__(self, ms):
        self.x = torch.randn(800, 16)
        self.ms = ms

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], self.x[i, :1].abs()


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
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        time.sleep(self.plant["forward"] / 1000)
        return SlowBackward.apply(self.net(x), self.plant["backward"])


class SlowSGD(torch.optim.SGD):
    ms = 0.0
    calls = 0

    def step(self, closure=None):
        SlowSGD.calls += 1
        time.sleep(self.ms / 1000)
        return super().step(closure)


def main():
    parser = script_log.arguments(__doc__, getitem=0.5, forward=5, backward=4, optimizer=7, host=3)
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--skip-every", type=int, default=10)
    args = parser.parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(23)
    SlowSGD.ms = plant["optimizer"]
    model = Net(plant)
    optimizer = SlowSGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    loader = DataLoader(Points(plant["getitem"]), batch_size=8, shuffle=True)
    log = script_log.Log("amp_scaler", args.log)
    losses = []
    log.start()
    for i, (x, y) in enumerate(loader):
        log.lap("data_wait")
        optimizer.zero_grad()
        log.lap("other")
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.autocast):
            loss = nn.functional.mse_loss(model(x).float(), y)
        if i % args.skip_every == args.skip_every - 1:
            loss = loss * float("inf")
        log.lap("forward")
        scaler.scale(loss).backward()
        log.lap("backward")
        calls = SlowSGD.calls
        scaler.step(optimizer)
        log.lap("optimizer")
        log.end_step(skipped=SlowSGD.calls == calls)
        scaler.update()
        losses.append(loss.item())
        if (i + 1) % 20 == 0:
            print(f"{i + 1} scale {scaler.get_scale()} optimizer steps {SlowSGD.calls}")
        log.lap("logging")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")
    log.finish(
        model.parameters(),
        [loss if abs(loss) != float("inf") else None for loss in losses],
        optimizer_steps=SlowSGD.calls,
        skipped_steps=[i for i, step in enumerate(log.steps) if step["skipped"]],
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
