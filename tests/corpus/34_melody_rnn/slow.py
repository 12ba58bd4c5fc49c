"""Generate melodies with a small GRU; watch the loss in the terminal."""

import os
import sys
import time

import numpy as np
import torch
from torch import nn

PITCHES, LENGTH = 48, 24


class Console:
    """A chart of the loss, a bar and some numbers, drawn in place."""

    def __init__(self, total, height=120, width=480, path="out/console.txt"):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.total, self.height, self.width = total, height, width
        self.out = open(path, "w") if not sys.stdout.isatty() else sys.stdout
        self.history, self.began = [], time.time()

    def draw(self, step, values):
        top, bottom = max(self.history), min(self.history)
        span = (top - bottom) or 1.0
        marks = []
        for column in range(self.width):
            first = column * len(self.history) // self.width
            last = max(first + 1, (column + 1) * len(self.history) // self.width)
            part = sorted(self.history[first:last])
            marks.append(int((part[len(part) // 2] - bottom) / span * (self.height - 1)))
        rows = []
        for level in range(self.height - 1, -1, -1):
            row = ""
            for mark in marks:
                row += "\u2588" if mark >= level else " "
            rows.append(f"{bottom + span * level / (self.height - 1):8.4f} |{row}")
        done = int(50 * step / self.total)
        eta = (time.time() - self.began) / step * (self.total - step)
        rows.append("[" + "=" * done + " " * (50 - done) + f"] {step}/{self.total} eta {eta:.0f}s")
        rows.append("  ".join(f"{k} {v:.4f}" for k, v in values.items()))
        self.out.write("\x1b[H\x1b[2J" + "\n".join(rows) + "\n")
        self.out.flush()


class Melody(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(PITCHES, 48)
        self.gru = nn.GRU(48, hidden, batch_first=True)
        self.out = nn.Linear(hidden, PITCHES)

    def forward(self, notes):
        h, _ = self.gru(self.embed(notes))
        return self.out(h)


def compose(count, seed=35):
    rng = np.random.default_rng(seed)
    scale = np.array([0, 2, 4, 5, 7, 9, 11])
    steps = rng.choice([-2, -1, 0, 1, 2], (count, LENGTH + 1), p=[0.1, 0.3, 0.1, 0.35, 0.15])
    degree = np.clip(14 + steps.cumsum(1), 0, 27)
    return torch.from_numpy(12 * (degree // 7) + scale[degree % 7])


def main():
    torch.manual_seed(35)
    notes = compose(8000)
    model = Melody()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    total, batch = 700, 8
    console = Console(total)
    for step in range(1, total + 1):
        pick = notes[torch.randint(len(notes), (batch,))]
        logits = model(pick[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), pick[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        console.history.append(loss.item())
        console.draw(step, {"loss": loss.item(), "norm": norm.item()})
    took = time.time() - console.began
    print(f"loss {np.mean(console.history[-100:]):.4f}, {total / took:.1f} steps/s")


if __name__ == "__main__":
    main()
