# What kind of household is behind a power meter? Readings come out of the utility's database.
import pathlib
import sqlite3
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

METERS, DAYS, SLOTS, KINDS = 32, 50, 24, 4
DB = pathlib.Path("data/meters.db")


def fill(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    rng = np.random.default_rng(93)
    peak = np.array([7, 12, 18, 22])
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE households (meter INTEGER PRIMARY KEY, kind INTEGER)")
    db.execute("CREATE TABLE readings (meter INTEGER, day INTEGER, slot INTEGER, watt REAL)")
    kinds = rng.integers(0, KINDS, METERS)
    db.executemany("INSERT INTO households VALUES (?, ?)", enumerate(kinds.tolist()))
    for day in range(DAYS):
        for slot in range(SLOTS):
            use = 200 + 900 * np.exp(-((slot - peak[kinds]) ** 2) / 6) + rng.gamma(2, 150, METERS)
            rows = [(m, day, slot, w) for m, w in enumerate(use.tolist())]
            db.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", rows)
    db.commit()
    db.close()


class MeterDays(Dataset):
    def __init__(self, path, days):
        self.db = sqlite3.connect(path)
        self.kinds = dict(self.db.execute("SELECT meter, kind FROM households"))
        self.keys = [(m, d) for d in days for m in self.kinds]

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, i):
        meter, day = self.keys[i]
        rows = self.db.execute(
            "SELECT watt FROM readings WHERE meter = ? AND day = ? ORDER BY slot", (meter, day)
        ).fetchall()
        curve = torch.tensor([watt for (watt,) in rows]) / 1000
        return curve, self.kinds[meter]


class Net(nn.Module):
    def __init__(self, width=1024, depth=4):
        super().__init__()
        self.inp = nn.Linear(SLOTS, width)
        self.mid = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.out = nn.Linear(width, KINDS)

    def forward(self, x):
        x = torch.relu(self.inp(x))
        for layer in self.mid:
            x = x + torch.relu(layer(x))
        return self.out(x)


torch.manual_seed(93)
fill(DB)
train_loader = DataLoader(MeterDays(DB, range(45)), batch_size=32, shuffle=True)
test_loader = DataLoader(MeterDays(DB, range(45, 50)), batch_size=80)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(6):
    t0 = time.time()
    for x, y in train_loader:
        loss = loss_fn(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch} loss {loss.item():.3f} ({time.time() - t0:.2f} s)", flush=True)

with torch.no_grad():
    right = sum((net(x).argmax(1) == y).sum().item() for x, y in test_loader)
print("test accuracy", right / len(test_loader.dataset))
