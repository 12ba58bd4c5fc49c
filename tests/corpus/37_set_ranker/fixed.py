"""ListNet: rank the documents of each query."""

import time

import numpy as np
import torch
from torch import nn

FEATURES, DOCUMENTS = 46, 12


def queries(count, seed=38):
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 1, FEATURES)
    rows = []
    for _ in range(count):
        x = rng.normal(0, 1, (DOCUMENTS, FEATURES)).astype(np.float32)
        score = x @ weights + rng.normal(0, 2, DOCUMENTS)
        grade = np.clip(np.digitize(score, [-4, 2, 8]), 0, 3)
        rows.append((torch.from_numpy(x), torch.from_numpy(grade)))
    return rows


class Scorer(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(width, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def listnet(scores, grades):
    target = torch.softmax(grades.float(), dim=-1)
    return -(target * torch.log_softmax(scores, dim=-1)).sum(-1)


def ndcg(model, rows, k=5):
    model.eval()
    gains = []
    discount = 1 / torch.log2(torch.arange(k) + 2.0)
    with torch.no_grad():
        x = torch.stack([features for features, _ in rows])
        for scores, (_, grades) in zip(model(x), rows, strict=True):
            gain = 2.0**grades - 1
            best = (gain.sort(descending=True).values[:k] * discount).sum()
            chosen = gain[scores.argsort(descending=True)[:k]]
            gains.append(((chosen * discount).sum() / best).item())
    model.train()
    return float(np.nanmean(gains))


def main():
    torch.manual_seed(38)
    rows = queries(3600)
    valid, train = rows[:400], rows[400:]
    model = Scorer()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batch_size, epochs = 32, 4
    for epoch in range(epochs):
        order = torch.randperm(len(train)).tolist()
        start, running = time.time(), 0.0
        for i in range(0, len(order), batch_size):
            batch = [train[j] for j in order[i : i + batch_size]]
            optimizer.zero_grad()
            features = torch.stack([features for features, _ in batch])
            grades = torch.stack([grades for _, grades in batch])
            loss = listnet(model(features), grades).mean()
            loss.backward()
            optimizer.step()
            running += loss.item()
        seconds = time.time() - start
        mean = running * batch_size / len(train)
        score = ndcg(model, valid)
        print(f"epoch {epoch} loss {mean:.4f} ndcg {score:.4f} ({seconds:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
