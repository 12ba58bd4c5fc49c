"""Restore the order of shuffled sentences with a small transformer."""

import time

import torch
from torch import nn

WORDS, LENGTH, WIDTH, BATCH, STEPS = 500, 32, 128, 48, 220
torch.manual_seed(65)


def sentences(count):
    """Chains in which each word suggests the next."""
    following = torch.randint(WORDS, (WORDS, 4))
    rows = torch.empty(count, LENGTH, dtype=torch.long)
    rows[:, 0] = torch.randint(WORDS, (count,))
    for t in range(1, LENGTH):
        rows[:, t] = following[rows[:, t - 1], torch.randint(4, (count,))]
    return rows


class Orderer(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, "gelu", batch_first=True)
            for _ in range(3)
        )
        self.place = nn.Linear(WIDTH, LENGTH)

    def forward(self, words):
        x = self.word(words)
        for layer in self.layers:
            x = layer(x)
        return self.place(x)


data = sentences(4000)
model = Orderer()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
smoothed = 0.0
began = time.time()
for step in range(1, STEPS + 1):
    rows = data[torch.randint(len(data), (BATCH,))]
    order = torch.rand(BATCH, LENGTH).argsort(1)
    logits = model(rows.gather(1, order))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), order.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = loss.item()
    smoothed = value if step == 1 else 0.98 * smoothed + 0.02 * value
    right = (logits.argmax(2) == order).float().mean().item()
    print(f"step {step} loss {value:.4f} smoothed {smoothed:.4f} right {right:.3f}")

print(f"{STEPS / (time.time() - began):.1f} steps/s")
