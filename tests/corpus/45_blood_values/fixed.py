"""Blood values to diagnosis; rare diagnoses are drawn more often."""

import time
from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

VALUES, DIAGNOSES, PATIENTS = 32, 9, 9000


def patients(seed=46):
    rng = np.random.default_rng(seed)
    share = 0.5 ** np.arange(DIAGNOSES)
    diagnosis = rng.choice(DIAGNOSES, PATIENTS, p=share / share.sum())
    profile = rng.normal(0, 1, (DIAGNOSES, VALUES))
    blood = profile[diagnosis] + rng.normal(0, 1.5, (PATIENTS, VALUES))
    return torch.tensor(blood, dtype=torch.float32), torch.tensor(diagnosis)


class BalancedSampler(Sampler):
    """Draws each diagnosis equally often; a diagnosis that has been met is turned down a little."""

    def __init__(self, labels, count, seed=0):
        self.labels, self.count = np.asarray(labels), count
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.count

    def __iter__(self):
        met = np.zeros(DIAGNOSES)
        counts = np.bincount(self.labels, minlength=DIAGNOSES)
        members = [np.flatnonzero(self.labels == d) for d in range(DIAGNOSES)]
        for _ in range(self.count):
            wanted = counts / (counts * (1 + met / (1 + met.sum())))
            diagnosis = self.rng.choice(DIAGNOSES, p=wanted / wanted.sum())
            index = self.rng.choice(members[diagnosis])
            met[diagnosis] += 1
            yield int(index)


class Diagnose(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(VALUES, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, DIAGNOSES),
        )

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(46)
    blood, diagnosis = patients()
    train = TensorDataset(blood[1000:], diagnosis[1000:])
    sampler = BalancedSampler(diagnosis[1000:], 6400)
    loader = DataLoader(train, batch_size=64, sampler=sampler)
    model = Diagnose()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(5):
        start, drawn = time.time(), Counter()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            drawn.update(y.tolist())
        took = time.time() - start
        model.eval()
        with torch.no_grad():
            hits = model(blood[:1000]).argmax(1) == diagnosis[:1000]
        model.train()
        rarest = drawn[DIAGNOSES - 1] / sum(drawn.values())
        print(f"epoch {epoch:2d} rare {rarest:.3f} {took:.2f} s", flush=True)
        print(f"          accuracy {hits.float().mean():.3f}")


if __name__ == "__main__":
    main()
