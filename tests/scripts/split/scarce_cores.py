"""Four workers burn CPU, but the whole process tree is pinned to one core.

`os.sched_setaffinity` comes before the loader, so the workers inherit it. Planted: `cpu`
milliseconds of the thread's own CPU time per sample. With four runnable workers each one waits for
the core about three times as long as it runs; `--cores N` leaves it N cores instead.
"""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from worker_view import WorkerView

import script_log

BATCH = 4


class Numbers(Dataset):
    def __init__(self, view, ms):
        self.view, self.ms = view, ms

    def __len__(self):
        return 240

    def __getitem__(self, i):
        self.view.item()
        until = time.thread_time_ns() + self.ms * 1e6
        number = i
        while time.thread_time_ns() < until:
            number = sum((number * k) % 7 for k in range(i % 5 + 20))
        return torch.full((32,), float(i % 9))


class Collate:
    def __init__(self, view):
        self.view = view

    def __call__(self, samples):
        self.view.collating()
        batch = torch.stack(samples)
        self.view.batch_done()
        return batch


def main():
    parser = script_log.arguments(__doc__, cpu=1.5, host=1)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--view", help="folder for the workers' own view")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[-args.cores :]
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(1)
    torch.manual_seed(43)
    view = WorkerView(args.view)
    data = Numbers(view, args.plant["cpu"])
    loader = DataLoader(
        data,
        batch_size=BATCH,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=Collate(view),
        multiprocessing_context="fork" if args.workers else None,
        persistent_workers=args.workers > 0,
    )
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log = script_log.Log("scarce_cores", args.log)
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
        workers={
            "planted": "runqueue",
            "per_batch_ns": None,
            "cpu_ns": args.plant["cpu"] * BATCH * 1e6,
        },
        cores=cores,
    )


if __name__ == "__main__":
    main()
