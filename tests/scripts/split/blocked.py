"""The workers wait, but for no storage: `--how sleep`, `lock` or `queue`.

sleep: each sample sleeps. lock: the workers share one lock and each holds it while it sleeps, so
the others wait for it. queue: each sample waits for a reply from a thread of the worker. Planted:
`wait` milliseconds per sample; with `lock` the wait is longer by what the others hold.
"""

import multiprocessing
import queue
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from worker_view import WorkerView

import script_log

BATCH = 8


class Remote(Dataset):
    def __init__(self, view, ms, how):
        self.view, self.ms, self.how = view, ms, how
        self.lock = multiprocessing.get_context("fork").Lock()
        self.asked = self.replies = None

    def __len__(self):
        return 400

    def serve(self):
        while True:
            i = self.asked.get()
            time.sleep(self.ms / 1000)
            self.replies.put(i)

    def ask(self, i):
        if self.asked is None:
            self.asked, self.replies = queue.Queue(), queue.Queue()
            threading.Thread(target=self.serve, daemon=True).start()
        self.asked.put(i)
        return self.replies.get()

    def __getitem__(self, i):
        self.view.item()
        if self.how == "queue":
            i = self.ask(i)
        elif self.how == "lock":
            with self.lock:
                time.sleep(self.ms / 1000)
        else:
            time.sleep(self.ms / 1000)
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
    parser = script_log.arguments(__doc__, wait=3, host=1)
    parser.add_argument("--how", choices=["sleep", "lock", "queue"], default="sleep")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--view", help="folder for the workers' own view")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(45)
    view = WorkerView(args.view)
    data = Remote(view, args.plant["wait"], args.how)
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
    log = script_log.Log("blocked", args.log)
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
        workers={"planted": "blocked", "per_batch_ns": args.plant["wait"] * BATCH * 1e6},
        how=args.how,
    )


if __name__ == "__main__":
    main()
