"""Decoding and transforming in `__getitem__` burns CPU: compressed rows, NumPy, pure Python.

Planted: `cpu` milliseconds of the thread's own CPU time per sample, spent on real work that is
repeated until the time is used up. There are no more workers than cores by default.
"""

import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from worker_view import WorkerView

import script_log

BATCH = 8


class Rows(Dataset):
    def __init__(self, view, ms):
        random = np.random.default_rng(2)
        rows = random.integers(0, 8, (320, 32, 32), dtype=np.uint8)
        self.rows = [zlib.compress(row.tobytes()) for row in rows]
        self.view, self.ms = view, ms

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        self.view.item()
        until = time.thread_time_ns() + self.ms * 1e6
        while True:
            row = np.frombuffer(zlib.decompress(self.rows[i]), np.uint8).reshape(32, 32)
            row = self.augment(row.astype(np.float32))
            if time.thread_time_ns() >= until:
                return torch.from_numpy(row)

    def augment(self, row):
        mean, spread = row.mean(1), row.std(1)
        values = [m / (s + 1.0) for m, s in zip(mean.tolist(), spread.tolist(), strict=True)]
        return np.array(values, np.float32)


class Collate:
    def __init__(self, view):
        self.view = view

    def __call__(self, samples):
        self.view.collating()
        batch = torch.stack(samples)
        self.view.batch_done()
        return batch


def main():
    parser = script_log.arguments(__doc__, cpu=3, host=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--context", choices=["fork", "spawn"], default="fork")
    parser.add_argument("--view", help="folder for the workers' own view")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(42)
    view = WorkerView(args.view)
    data = Rows(view, args.plant["cpu"])
    loader = DataLoader(
        data,
        batch_size=BATCH,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=Collate(view),
        multiprocessing_context=args.context if args.workers else None,
        persistent_workers=args.workers > 0,
    )
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log = script_log.Log("slow_cpu", args.log)
    losses = []
    log.start()
    for epoch in range(args.epochs):
        batches = iter(loader)
        log.lap("epoch_edge")
        for x in batches:
            log.lap("data_wait")
            optimizer.zero_grad()
            loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
            log.lap("forward")
            loss.backward()
            log.lap("backward")
            optimizer.step()
            log.lap("optimizer")
            log.end_step()
            losses.append(loss.item())
            time.sleep(args.plant["host"] / 1000)
            log.lap("other")
        log.lap("epoch_edge")
        print(f"epoch {epoch} loss {losses[-1]:.5f}")
    log.finish(
        model.parameters(),
        losses,
        workers={"planted": "cpu", "per_batch_ns": args.plant["cpu"] * BATCH * 1e6},
    )


if __name__ == "__main__":
    main()
