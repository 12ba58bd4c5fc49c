"""Character-level language model: train a small GPT on one text file."""

import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class GPTConfig:
    block_size: int = 96
    vocab_size: int = 32
    n_layer: int = 3
    n_head: int = 4
    n_embd: int = 96


def position_table(length, n_embd):
    table = torch.zeros(length, n_embd)
    for pos in range(length):
        for i in range(n_embd):
            angle = pos / 10000 ** (2 * (i // 2) / n_embd)
            table[pos, i] = math.sin(angle) if i % 2 == 0 else math.cos(angle)
    return table


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd),
            nn.GELU(),
            nn.Linear(4 * config.n_embd, config.n_embd),
        )

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.attn(self.ln_1(x)).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx)
        x = x + position_table(idx.size(1), self.config.n_embd)
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


def load_text():
    path = Path("data/input.txt")
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        rng = np.random.default_rng(1)
        words = ["".join(rng.choice(list("etaoinsrhdl"), rng.integers(2, 8))) for _ in range(400)]
        path.write_text(" ".join(words[i] for i in rng.zipf(1.3, 40000) % 400))
    return path.read_text()


batch_size = 12
max_iters = 250
log_interval = 50

torch.manual_seed(1337)
text = load_text()
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
config = GPTConfig(vocab_size=len(chars))
model = GPT(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
print(f"{len(data)} characters, {sum(p.numel() for p in model.parameters()) / 1e6:.2f}M parameters")


def get_batch():
    ix = torch.randint(len(data) - config.block_size - 1, (batch_size,))
    x = torch.stack([data[i : i + config.block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + config.block_size] for i in ix])
    return x, y


t0 = time.time()
for it in range(max_iters):
    X, Y = get_batch()
    _, loss = model(X, Y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if (it + 1) % log_interval == 0:
        t1 = time.time()
        ms = (t1 - t0) * 1000 / log_interval
        print(f"iter {it + 1}: loss {loss.item():.4f}, time {ms:.2f}ms")
        t0 = t1
