"""Collating is what takes long: padding in pure Python, or a sleep, per batch.

`--kind cpu` (default) burns CPU in the collate function, `--kind sleep` sleeps there. Planted:
`collate` milliseconds per batch, and a little CPU per sample (`item`).
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from worker_view import WorkerView

import script_log

BATCH = 8


class Sentences(Dataset):
    def __init__(self, view, ms):
        self.view, self.ms = view, ms

    def __len__(self):
        return 320

    def __getitem__(self, i):
        self.view.item()
        until = time.thread_time_ns() + self.ms * 1e6
        while True:
            words = [float((i * k) % 11) for k in range(i % 20 + 4)]
            if time.thread_time_ns() >= until:
                return words


class Collate:
    def __init__(self, view, ms, kind):
        self.view, self.ms, self.kind = view, ms, kind

    def __call__(self, samples):
        self.view.collating()
        if self.kind == "sleep":
            time.sleep(self.ms / 1000)
            batch = torch.tensor(self.pad(samples))
        else:
            until = time.thread_time_ns() + self.ms * 1e6
            while True:
                batch = torch.tensor(self.pad(samples))
                if time.thread_time_ns() >= until:
                    break
        self.view.batch_done()
        return batch

    def pad(self, samples):
        return [words + [0.0] * (32 - len(words)) for words in samples]


def main():
    parser = script_log.arguments(__doc__, collate=20, item=0.2, host=1)
    parser.add_argument("--kind", choices=["cpu", "sleep"], default="cpu")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--context", choices=["fork", "spawn"], default="fork")
    parser.add_argument("--view", help="folder for the workers' own view")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(44)
    view = WorkerView(args.view)
    data = Sentences(view, args.plant["item"])
    loader = DataLoader(
        data,
        batch_size=BATCH,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=Collate(view, args.plant["collate"], args.kind),
        multiprocessing_context=args.context if args.workers else None,
        persistent_workers=args.workers > 0,
    )
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log = script_log.Log("slow_collate", args.log)
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
        workers={"planted": "collate", "per_batch_ns": args.plant["collate"] * 1e6},
        kind=args.kind,
    )


if __name__ == "__main__":
    main()
