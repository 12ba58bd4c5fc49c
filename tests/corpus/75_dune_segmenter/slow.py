"""Crest lines of dunes in aerial photos, with averaged weights and clipped gradients."""

import time

import torch
from torch import nn
from torch.nn import functional as F

SIDE, BATCH, STEPS = 48, 16, 140


def dunes(count, seed=84):
    g = torch.Generator().manual_seed(seed)
    angle = 3.14 * torch.rand(count, 1, 1, generator=g)
    axis = torch.linspace(-1, 1, SIDE)
    along = axis[:, None] * torch.sin(angle) + axis * torch.cos(angle)
    wave = torch.sin(12 * along + 6.28 * torch.rand(count, 1, 1, generator=g))
    image = wave[:, None] + 0.4 * torch.randn(count, 3, SIDE, SIDE, generator=g)
    return image.contiguous(memory_format=torch.channels_last), (wave > 0.8).float()


class Segmenter(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, padding=1)
        self.inner = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(3))
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        x = F.relu(self.down(x))
        for layer in self.inner:
            x = x + F.relu(layer(x))
        return self.out(x).squeeze(1)


class Average:
    def __init__(self, model, decay=0.99):
        self.live = [p.detach() for p in model.parameters()]
        self.kept = [p.clone() for p in self.live]
        self.decay = decay

    def update(self):
        torch._foreach_lerp_(self.kept, self.live, 1 - self.decay)


def main():
    torch.manual_seed(84)
    images, crests = dunes(600)
    model = Segmenter().to(memory_format=torch.channels_last)
    average = Average(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    weight = torch.tensor(3.0)
    history, norms = [], []
    start = time.time()
    for step in range(1, STEPS + 1):
        index = torch.randint(len(images), (BATCH,))
        logits = model(images[index])
        loss = F.binary_cross_entropy_with_logits(logits, crests[index], pos_weight=weight)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.update()
        history.append(loss.item())
        norms.append(norm.item())
        if not torch.isfinite(loss):
            raise RuntimeError(f"loss {history[-1]} at step {step}")
        print(f"{step:4d} {history[-1]:.4f} {norms[-1]:.3f}", flush=True)
    print(f"{STEPS / (time.time() - start):.2f} steps/s")


if __name__ == "__main__":
    main()
