"""Fine-tuning a small vision transformer on lichens, rates fall towards the first layers."""

import math
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    size: int = 32
    patch: int = 8
    width: int = 64
    depth: int = 20
    heads: int = 4
    species: int = 6
    batch: int = 10
    steps: int = 50
    epochs: int = 4
    rate: float = 1e-3
    fall: float = 0.85
    warmup: int = 30


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.qkv, self.out, self.heads = (
            nn.Linear(c.width, 3 * c.width),
            nn.Linear(c.width, c.width),
            c.heads,
        )

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(c.width), Attention(c))
        inner = nn.Sequential(
            nn.Linear(c.width, 4 * c.width), nn.GELU(), nn.Linear(4 * c.width, c.width)
        )
        self.think = nn.Sequential(nn.LayerNorm(c.width), inner)

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.think(x)


class ViT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed = nn.Conv2d(3, c.width, c.patch, stride=c.patch)
        self.place = nn.Parameter(torch.zeros(1, (c.size // c.patch) ** 2, c.width))
        self.blocks = nn.ModuleList([Block(c) for _ in range(c.depth)])
        self.norm, self.head = nn.LayerNorm(c.width), nn.Linear(c.width, c.species)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x.mean(1)))


def parameter_groups(model):
    for p in model.parameters():
        yield {"params": [p], "weight_decay": 0.05 if p.ndim > 1 else 0.0}


class LayerwiseRates:
    """Warm-up and cosine over the run, times fall ** (layers above)."""

    def __init__(self, optimizer, model, c):
        self.optimizer, self.model, self.c = optimizer, model, c
        self.count, self.total = 0, c.steps * c.epochs

    def name_of(self, parameter):
        for name, p in self.model.named_parameters():
            if p is parameter:
                return name

    def layers_above(self, name):
        if name.startswith("blocks."):
            return self.c.depth - int(name.split(".")[1])
        return 0 if name.startswith(("norm", "head")) else self.c.depth + 1

    def step(self):
        self.count += 1
        warm = min(1.0, self.count / self.c.warmup)
        now = self.c.rate * warm * 0.5 * (1 + math.cos(math.pi * self.count / self.total))
        for group in self.optimizer.param_groups:
            above = self.layers_above(self.name_of(group["params"][0]))
            group["lr"] = now * self.c.fall**above


def lichens(c, generator):
    """Pictures of rosettes; the species is told by the number of lobes and the colour."""
    kind = torch.randint(c.species, (c.batch,), generator=generator)
    axis = torch.linspace(-1, 1, c.size)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    angle, radius = torch.atan2(y, x), (x**2 + y**2).sqrt()
    turn = 6.3 * torch.rand(c.batch, 1, 1, generator=generator)
    edge = 0.6 + 0.2 * torch.cos((3 + kind[:, None, None]) * angle + turn)
    body = torch.sigmoid(12 * (edge - radius))
    colour = 0.3 + 0.1 * kind[:, None].float() * torch.tensor([1.0, 0.5, -0.5])
    noise = 0.4 * torch.randn(c.batch, 3, c.size, c.size, generator=generator)
    return body[:, None] * colour[:, :, None, None] + noise, kind


def main(c):
    generator = torch.Generator().manual_seed(31)
    torch.manual_seed(31)
    model = ViT(c)
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=c.rate)
    rates = LayerwiseRates(optimizer, model, c)
    for epoch in range(c.epochs):
        start, right, summed = time.time(), 0, 0.0
        for _ in range(c.steps):
            pictures, kind = lichens(c, generator)
            rates.step()
            scores = model(pictures)
            loss = F.cross_entropy(scores, kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == kind).sum().item()
            summed += loss.item()
        share, took = right / c.steps / c.batch, time.time() - start
        print(
            f"epoch {epoch}: loss {summed / c.steps:.3f}, right {share:.3f}, {took:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(Config())
