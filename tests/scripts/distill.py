"""Distillation: in each training step a teacher in eval mode runs forward under no_grad.

The teacher's forward is part of the step's forward, not an evaluation. Planted: sleep in
`__getitem__` (per sample), in the teacher, in the student's forward, in the student's backward, in
the optimizer and in host code.
"""

import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

import script_log


class Points(Dataset):
    def __init__(self, ms):
        self.ms = ms
        self.x = torch.randn(1000, 16)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], int(self.x[i, 0] > 0)


class Sleepy(nn.Module):
    """Sleeps in forward and in backward."""

    def __init__(self, forward_ms, backward_ms):
        super().__init__()
        self.forward_ms, self.backward_ms = forward_ms, backward_ms

    def forward(self, x):
        time.sleep(self.forward_ms / 1000)
        if x.requires_grad:
            x.register_hook(lambda grad: time.sleep(self.backward_ms / 1000))
        return x


def mlp(width, forward_ms, backward_ms):
    return nn.Sequential(
        nn.Linear(16, width), nn.ReLU(), Sleepy(forward_ms, backward_ms), nn.Linear(width, 2)
    )


class SlowAdam(torch.optim.Adam):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def main():
    args = script_log.arguments(
        __doc__, getitem=0.4, teacher=7, student=3, backward=4, optimizer=2, host=2
    ).parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(11)
    teacher = mlp(64, plant["teacher"], 0).eval()
    student = mlp(16, plant["student"], plant["backward"])
    SlowAdam.ms = plant["optimizer"]
    optimizer = SlowAdam(student.parameters(), lr=0.005)
    loader = DataLoader(Points(plant["getitem"]), batch_size=8, shuffle=True)
    log = script_log.Log("distill", args.log)
    losses = []
    log.start()
    for x, y in loader:
        log.lap("data_wait")
        with torch.no_grad():
            soft = teacher(x)
            log.lap("forward")
            soft = F.softmax(soft / 2.0, dim=1)
        optimizer.zero_grad()
        log.lap("other")
        out = student(x)
        log.lap("forward")
        loss = F.cross_entropy(out, y) + F.kl_div(
            F.log_softmax(out / 2.0, dim=1), soft, reduction="batchmean"
        )
        log.lap("other")
        loss.backward()
        log.lap("backward")
        optimizer.step()
        log.lap("optimizer")
        log.end_step()
        losses.append(loss.item())
        if len(losses) % 25 == 0:
            print(f"step {len(losses)} loss {losses[-1]:.4f}")
        log.lap("logging")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")
    log.finish(
        [*student.parameters(), *teacher.parameters()],
        losses,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
