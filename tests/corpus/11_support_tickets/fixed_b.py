"""Route support tickets to teams."""

import re
import time
from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

MAX_LEN = 128
TEAMS = ["billing", "login", "delivery", "returns", "other"]
TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+(?:[.,]\d+)*|[^\sa-z\d]")
SYLLABLES = "ba ko ri ne lu sta ver mi ton pa gre si do fan ul ex por ta in re".split()


def make_tickets(count, seed=0):
    rng = np.random.default_rng(seed)
    lexicon = ["".join(rng.choice(SYLLABLES, rng.integers(1, 6))) for _ in range(3000)]
    tickets = []
    for _ in range(count):
        team = int(rng.integers(len(TEAMS)))
        length = int(np.clip(rng.lognormal(2.6, 0.5), 4, 60))
        pick = (rng.zipf(1.25, length) + 97 * team) % len(lexicon)
        words = [lexicon[i] for i in pick]
        words.insert(0, f"#{rng.integers(1e6)}")
        tickets.append((" ".join(words).capitalize() + "!", team))
    return tickets


class WordPieces:
    def __init__(self, texts, size=3000):
        counts = Counter()
        for text in texts:
            for match in TOKEN.finditer(text.lower()):
                word = match.group()
                counts.update(word[i : i + n] for n in range(1, 9) for i in range(len(word)))
        self.vocab = {p: i + 2 for i, (p, _) in enumerate(counts.most_common(size))}

    def pieces(self, word):
        """Join neighbours, the most frequent pair first, as long as the vocabulary has it."""
        parts, unknown = list(word), len(self.vocab) + 2
        while len(parts) > 1:
            pairs = enumerate(zip(parts, parts[1:], strict=False))
            ranked = [(self.vocab.get(a + b, unknown), i) for i, (a, b) in pairs]
            rank, i = min(ranked)
            if rank == unknown:
                break
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        return [self.vocab.get(part, 1) for part in parts]

    def encode(self, text):
        ids = []
        for match in TOKEN.finditer(text.lower()):
            ids.extend(self.pieces(match.group()))
        return ids[:MAX_LEN]


class Collate:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, rows):
        ids = [self.tokenizer.encode(text) for text, _ in rows]
        width = max(len(i) for i in ids)
        batch = torch.zeros(len(ids), width, dtype=torch.long)
        for row, i in zip(batch, ids, strict=True):
            row[: len(i)] = torch.tensor(i)
        return batch, torch.tensor([team for _, team in rows])


class Router(nn.Module):
    def __init__(self, vocab, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 64, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, len(TEAMS))

    def forward(self, ids):
        mask = ids == 0
        h = self.encoder(self.embed(ids), src_key_padding_mask=mask)
        h = h.masked_fill(mask[..., None], 0).sum(1) / (~mask).sum(1, keepdim=True)
        return self.head(h)


def main():
    torch.manual_seed(0)
    tickets = make_tickets(6000)
    tokenizer = WordPieces([text for text, _ in tickets[:1500]])
    loader = DataLoader(tickets, 64, shuffle=True, collate_fn=Collate(tokenizer))
    model = Router(len(tokenizer.vocab) + 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(5):
        began, losses = time.time(), []
        for ids, team in loader:
            loss = nn.functional.cross_entropy(model(ids), team)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.3f} in {time.time() - began:.1f}s", flush=True)


if __name__ == "__main__":
    main()
