"""Invent names of hamlets letter by letter with a GRU; after each epoch some are looked at."""

import random
import time

import torch
import torch.nn.functional as F
from torch import nn

FIRST = "ash oak elm wood thorn brook mill stone black white green north south king bishop".split()
MIDDLE = ["", "", "en", "ing", "er", "le", "more"]
LAST = "ton ham by thorpe ford bury field worth combe dale wick hurst stead minster".split()
CHUNK, BATCH = 48, 24


def gazetteer(count, seed):
    rng = random.Random(seed)
    names = (rng.choice(FIRST) + rng.choice(MIDDLE) + rng.choice(LAST) for _ in range(count))
    return "\n".join(names)


class NameModel(nn.Module):
    def __init__(self, letters, size=64, width=192):
        super().__init__()
        self.letter = nn.Embedding(letters, size)
        self.gru = nn.GRU(size, width, batch_first=True)
        self.out = nn.Linear(width, letters)

    def forward(self, text, state=None):
        hidden, state = self.gru(self.letter(text), state)
        return self.out(hidden), state


@torch.no_grad()
def invent(model, first, count=64, length=100):
    model.eval()
    text = torch.full((count, 1), first)
    for _ in range(length):
        scores, _ = model(text)
        letter = torch.multinomial(scores[:, -1].softmax(-1), 1)
        text = torch.cat([text, letter], 1)
    model.train()
    return text[:, 1:].tolist()


def judge(rows, letters):
    """Share of invented names with an ending that exists, and of names not heard before."""
    names = []
    for row in rows:
        names += "".join(letters[i] for i in row).split("\n")[1:-1]
    good = [name for name in names if name.endswith(tuple(LAST))]
    known = {a + b + c for a in FIRST for b in MIDDLE for c in LAST}
    fresh = [name for name in good if name not in known]
    return len(good) / max(1, len(names)), len(fresh) / max(1, len(good)), fresh[:3]


def main(epochs=5, steps=40):
    torch.manual_seed(120)
    text = gazetteer(6000, 120)
    letters = sorted(set(text))
    index = {letter: i for i, letter in enumerate(letters)}
    ids = torch.tensor([index[letter] for letter in text])
    model = NameModel(len(letters))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        start, total = time.time(), 0.0
        for _ in range(steps):
            at = torch.randint(len(ids) - CHUNK - 1, (BATCH, 1))
            rows = ids[at + torch.arange(CHUNK + 1)]
            scores, _ = model(rows[:, :-1])
            loss = F.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        good, fresh, some = judge(invent(model, index["\n"]), letters)
        took = time.time() - start
        print(f"epoch {epoch} loss {total / steps:.3f} good {good:.2f} fresh {fresh:.2f}", *some)
        print(f"epoch {epoch} took {took:.2f} s", flush=True)


if __name__ == "__main__":
    main()
