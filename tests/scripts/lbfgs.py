"""LBFGS: forward and backward run several times in a closure, inside `optimizer.step`.

Planted: sleep in `__getitem__` (per sample), in forward and in backward (per evaluation of the
closure), in a subclass's `step` before it calls LBFGS's, and in host code between the steps.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log


class Regression(Dataset):
    def __init__(self, ms):
        self.ms = ms
        self.x = torch.linspace(-1, 1, 640).unsqueeze(1)
        self.y = torch.sin(3 * self.x)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], self.y[i]


class SlowTanh(torch.autograd.Function):
    ms = 0.0

    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        time.sleep(SlowTanh.ms / 1000)
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y)


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.a, self.b = nn.Linear(1, 16), nn.Linear(16, 1)

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.b(SlowTanh.apply(self.a(x)))


class SlowLBFGS(torch.optim.LBFGS):
    ms = 0.0

    def step(self, closure):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def main():
    args = script_log.arguments(
        __doc__, getitem=0.6, forward=4, backward=3, optimizer=12, host=7
    ).parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(5)
    SlowTanh.ms, SlowLBFGS.ms = plant["backward"], plant["optimizer"]
    model = Net(plant["forward"])
    optimizer = SlowLBFGS(model.parameters(), lr=0.2, max_iter=5, history_size=5)
    loader = DataLoader(Regression(plant["getitem"]), batch_size=16, shuffle=True)
    log = script_log.Log("lbfgs", args.log)
    losses = []
    evaluations = 0
    log.start()
    for epoch in range(2):
        for x, y in loader:
            log.lap("data_wait")

            def closure(x=x, y=y):
                nonlocal evaluations
                log.lap("optimizer")
                evaluations += 1
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                log.lap("forward")
                loss.backward()
                log.lap("backward")
                return loss

            loss = optimizer.step(closure)
            log.lap("optimizer")
            log.end_step()
            losses.append(loss.item())
            log.lap("logging")
            time.sleep(plant["host"] / 1000)
            log.lap("other")
        log.lap("epoch_edge")
        print(f"epoch {epoch}: mse {losses[-1]:.5f}")
    log.finish(
        model.parameters(),
        losses,
        closure_evaluations=evaluations,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 16e6},
    )


if __name__ == "__main__":
    main()
