"""Kinds of accidents from short reports; rare kinds are drawn more often."""

import argparse
import random
import re
import time

import torch
import torch.nn as nn

KINDS = {
    "slip": 0.34,
    "fall from height": 0.2,
    "cut": 0.16,
    "burn": 0.1,
    "vehicle": 0.08,
    "falling object": 0.06,
    "electric": 0.04,
    "chemical": 0.02,
}
PLACES = "yard hall dock roof stairs kitchen ramp office cellar workshop gate platform".split()
WHO = "worker driver visitor cook fitter cleaner apprentice guard clerk welder".split()


def write_reports(count, seed):
    rng = random.Random(seed)
    kinds = rng.choices(list(KINDS), list(KINDS.values()), k=count)
    texts = []
    for kind in kinds:
        sign = kind.split()[rng.randrange(len(kind.split()))]
        words = [rng.choice(WHO), "in", rng.choice(PLACES), f"{sign}{rng.randrange(12)}"]
        words += [f"w{int(rng.expovariate(0.004))}" for _ in range(rng.randint(10, 30))]
        rng.shuffle(words)
        texts.append(" ".join(words))
    return texts, kinds


def encode(texts, vocab, length=36):
    ids = torch.zeros(len(texts), length, dtype=torch.long)
    for row, text in zip(ids, texts):
        found = [vocab.get(w, 1) for w in re.findall(r"\w+", text)[:length]]
        row[: len(found)] = torch.tensor(found)
    return ids


def vocabulary(texts):
    vocab = {"<pad>": 0, "<unk>": 1}
    for text in texts:
        for word in re.findall(r"\w+", text):
            vocab.setdefault(word, len(vocab))
    return vocab


def balance(kinds):
    weights = [1.0 / kinds.count(kind) for kind in kinds]
    return torch.tensor(weights, dtype=torch.double)


class TextCNN(nn.Module):
    def __init__(self, words, dim=64, channels=64):
        super().__init__()
        self.embed = nn.Embedding(words, dim, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(dim, channels, k, padding=1) for k in (2, 3, 4))
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(3 * channels, len(KINDS))

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        pooled = [torch.relu(conv(x)).amax(2) for conv in self.convs]
        return self.out(self.drop(torch.cat(pooled, 1)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=32000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    torch.manual_seed(15)
    texts, kinds = write_reports(args.reports, 15)
    vocab = vocabulary(texts)
    x = encode(texts, vocab)
    y = torch.tensor([list(KINDS).index(kind) for kind in kinds])
    weights = balance(kinds)
    print(f"{len(texts)} reports, {len(vocab)} words", flush=True)

    model = TextCNN(len(vocab))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        t0, right = time.time(), 0
        drawn = torch.multinomial(weights, len(x), replacement=True)
        for step, rows in enumerate(drawn.split(args.batch), 1):
            scores = model(x[rows])
            loss = nn.functional.cross_entropy(scores, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == y[rows]).sum().item()
            if step % 50 == 0:
                print(f"  step {step} loss {loss.item():.4f}", flush=True)
        print(
            f"epoch {epoch}: accuracy {right / len(x):.3f}, {time.time() - t0:.2f} s", flush=True
        )


if __name__ == "__main__":
    main()
