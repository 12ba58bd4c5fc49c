# word2vec with negative sampling
# usage: python slow.py [text file]

import re
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DIM, WINDOW, NEGATIVES, BATCH = 96, 3, 6, 512


def sample_text(path):
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        parts = ["al", "be", "cor", "da", "em", "fi", "gu", "ho", "in", "ju", "ka", "lo", "mu"]
        words = sorted({"".join(rng.choice(parts, rng.integers(1, 5))) for _ in range(14000)})
        rng.shuffle(words)
        share = 1 / (np.arange(len(words)) + 60)
        picks = rng.choice(len(words), 150_000, p=share / share.sum())
        lines = [" ".join(words[i] for i in row) for row in picks.reshape(-1, 15)]
        path.write_text(".\n".join(line.capitalize() for line in lines))
    return path.read_text()


def read_corpus(text):
    words = re.findall(r"[a-z]+", text.lower())
    vocabulary = []
    for word in words:
        if word not in vocabulary:
            vocabulary.append(word)
    ids = [vocabulary.index(word) for word in words]
    return vocabulary, torch.tensor(ids)


class SkipGram(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.centre = nn.Embedding(size, dim, sparse=True)
        self.context = nn.Embedding(size, dim, sparse=True)
        nn.init.uniform_(self.centre.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, word, near, far):
        w = self.centre(word)
        good = (w * self.context(near)).sum(1)
        bad = torch.bmm(self.context(far), w[:, :, None]).squeeze(2)
        return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(1)).mean()


path = Path(sys.argv[1] if len(sys.argv) > 1 else "data/corpus.txt")
torch.manual_seed(0)
began = time.time()
vocabulary, ids = read_corpus(sample_text(path))
print(f"{len(ids)} words, {len(vocabulary)} different", flush=True)

model = SkipGram(len(vocabulary), DIM)
optimizer = torch.optim.SparseAdam(model.parameters(), lr=2e-3)
counts = torch.bincount(ids).float() ** 0.75
clock, steps, running = time.time(), 500, 0.0
for step in range(1, steps + 1):
    place = torch.randint(WINDOW, len(ids) - WINDOW, (BATCH,))
    shift = torch.randint(1, WINDOW + 1, (BATCH,)) * (torch.randint(0, 2, (BATCH,)) * 2 - 1)
    far = torch.multinomial(counts, BATCH * NEGATIVES, replacement=True).view(BATCH, NEGATIVES)
    loss = model(ids[place], ids[place + shift], far)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss.item()
    if step % 100 == 0:
        print(f"step {step:5d} loss {running / 100:.4f} {100 / (time.time() - clock):.0f} steps/s")
        running, clock = 0.0, time.time()

np.save("vectors.npy", model.centre.weight.detach().numpy())
