"""Fine-tuning with `model.eval()` all the time: a frozen backbone, gradients for the head only.

Nothing here is an evaluation. Planted: sleep in `__getitem__` (per sample), in the backbone
(inside the root's forward, under no_grad), in the head's backward, in the optimizer and in host
code.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log


class Photos(Dataset):
    def __init__(self, ms):
        self.ms = ms
        self.images = torch.rand(1040, 3, 8, 8)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.images[i], i % 3


class Backbone(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.conv, self.norm = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16)

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return torch.relu(self.norm(self.conv(x))).mean((2, 3))


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ms):
        ctx.ms = ms
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.ms / 1000)
        return grad, None


class Classifier(nn.Module):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant
        self.backbone = Backbone(plant["forward"])
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return SlowBackward.apply(self.head(features), self.plant["backward"])


class SlowAdamW(torch.optim.AdamW):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def main():
    args = script_log.arguments(
        __doc__, getitem=0.4, forward=7, backward=5, optimizer=3, host=2
    ).parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(10)
    model = Classifier(plant)
    model.eval()
    for p in model.backbone.parameters():
        p.requires_grad_(False)
    SlowAdamW.ms = plant["optimizer"]
    optimizer = SlowAdamW(model.head.parameters(), lr=0.01)
    loader = DataLoader(Photos(plant["getitem"]), batch_size=8, shuffle=True)
    log = script_log.Log("frozen_eval", args.log)
    losses = []
    log.start()
    for x, y in loader:
        log.lap("data_wait")
        optimizer.zero_grad()
        log.lap("other")
        loss = nn.functional.cross_entropy(model(x), y)
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        optimizer.step()
        log.lap("optimizer")
        log.end_step()
        losses.append(loss.item())
        if len(losses) % 26 == 0:
            print(f"{len(losses)}/{len(loader)} loss {losses[-1]:.4f}")
        log.lap("logging")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")
    log.finish(
        model.parameters(),
        losses,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
