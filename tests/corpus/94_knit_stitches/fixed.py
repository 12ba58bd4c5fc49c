"""Next stitch in hand-written knitting patterns: a small transformer with a mixture of experts."""

import dataclasses
import math
import random
import time

import torch
import torch.nn.functional as F
from torch import nn

STITCHES = "k p yo k2tog ssk sl m1l m1r c4f c4b bo co turn".split()


@dataclasses.dataclass
class Config:
    width: int = 128
    hidden: int = 384
    heads: int = 4
    depth: int = 2
    experts: int = 6
    length: int = 64
    batch: int = 16
    epochs: int = 4
    steps: int = 42
    lr: float = 1e-3
    seed: int = 116


def knit(rows, rng):
    """Rows repeat a motif of two to six stitches; now and then there is a slip."""
    cloth = []
    for _ in range(rows):
        motif = [rng.randrange(len(STITCHES)) for _ in range(rng.randint(2, 6))]
        for _ in range(rng.randint(3, 8)):
            cloth += [s if rng.random() < 0.97 else rng.randrange(len(STITCHES)) for s in motif]
    return torch.tensor(cloth)


class ExpertLayer(nn.Module):
    """Each position is answered by the expert that the gate prefers (Switch)."""

    def __init__(self, cfg):
        super().__init__()
        self.gate = nn.Linear(cfg.width, cfg.experts)
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(cfg.width, cfg.hidden), nn.GELU(), nn.Linear(cfg.hidden, cfg.width)
            )
            for _ in range(cfg.experts)
        )

    def forward(self, x):
        weight, choice = self.gate(x).softmax(-1).max(-1)
        answer = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            mine = choice == k
            answer[mine] = expert(x[mine])
        return weight.unsqueeze(-1) * answer


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.norm_a, self.norm_b = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width)
        self.merge = nn.Linear(cfg.width, cfg.width)
        self.mixture = ExpertLayer(cfg)

    def forward(self, x):
        b, t, w = x.shape
        qkv = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*qkv.unbind(0), is_causal=True)
        x = x + self.merge(mixed.transpose(1, 2).reshape(b, t, w))
        return x + self.mixture(self.norm_b(x))


class Knitter(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stitch = nn.Embedding(len(STITCHES), cfg.width)
        self.place = nn.Parameter(0.02 * torch.randn(cfg.length, cfg.width))
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.depth)])
        self.out = nn.Linear(cfg.width, len(STITCHES))

    def forward(self, ids):
        return self.out(self.blocks(self.stitch(ids) + self.place))


def main(cfg):
    torch.manual_seed(cfg.seed)
    cloth = knit(2000, random.Random(cfg.seed))
    model = Knitter(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        start, total = time.time(), 0.0
        for _ in range(cfg.steps):
            at = torch.randint(len(cloth) - cfg.length - 1, (cfg.batch, 1))
            rows = cloth[at + torch.arange(cfg.length + 1)]
            scores = model(rows[:, :-1])
            loss = F.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        perplexity, took = math.exp(total / cfg.steps), time.time() - start
        print(f"epoch {epoch} perplexity {perplexity:.3f} seconds {took:.2f}", flush=True)


if __name__ == "__main__":
    main(Config())
