"""Which language is a short message in? Byte-level GRU."""

import time

import numpy as np
import torch
from torch import nn

LANGUAGES, LENGTH, BATCH, STEPS = 6, 64, 64, 420


class Messages:
    """Messages made from letter statistics, a shard of 512 when it is first needed."""

    def __init__(self, shards=16, seed=62):
        self.rng = np.random.default_rng(seed)
        self.shards = shards
        self.ready = {}

    def shard(self, number, size=512):
        if number not in self.ready:
            rng = np.random.default_rng(number)
            table = np.random.default_rng(0).dirichlet(np.ones(64) * 0.2, (LANGUAGES, 64))
            table = table.cumsum(2)
            language = rng.integers(0, LANGUAGES, size)
            text = np.zeros((size, LENGTH), dtype=np.int64)
            for t in range(1, LENGTH):
                row = table[language, text[:, t - 1]]
                text[:, t] = np.minimum((row < rng.random((size, 1))).sum(1), 63)
            self.ready[number] = torch.from_numpy(text), torch.from_numpy(language)
        return self.ready[number]

    def batch(self, size):
        text, language = self.shard(int(self.rng.integers(self.shards)))
        pick = torch.from_numpy(self.rng.integers(0, len(language), size))
        return text[pick], language[pick]


class Classifier(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.embed = nn.Embedding(64, 64)
        self.gru = nn.GRU(64, hidden, batch_first=True)
        self.head = nn.Linear(hidden, LANGUAGES)

    def forward(self, text):
        h, _ = self.gru(self.embed(text))
        return self.head(h.mean(1))


def main():
    torch.manual_seed(62)
    messages = Messages()
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    start = time.time()
    for step in range(1, STEPS + 1):
        text, language = messages.batch(BATCH)
        loss = nn.functional.cross_entropy(model(text), language)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            rate = step / (time.time() - start)
            print(f"step {step} loss {loss.item():.4f} {rate:.1f} it/s", flush=True)


if __name__ == "__main__":
    main()
