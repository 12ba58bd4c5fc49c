"""Preparing a batch costs nearly nothing, but handing it over does: `--mib` MiB of NumPy each.

The batch is a class of the script's own, so torch shares no memory and the array is pickled
through a pipe. The batch itself notes when it was ready, when its pickling began and when it
had arrived; `handovers` in the log has these instants for each batch.
"""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from worker_view import WorkerView

import script_log

BATCH = 8


class Payload:
    """A batch of large arrays with a few numbers."""

    def __init__(self, array, rows):
        self.array, self.rows = array, rows
        self.instants = {"ready_ns": time.perf_counter_ns()}

    def __getstate__(self):
        instants = {**self.instants, "pickling_ns": time.perf_counter_ns()}
        return {"array": self.array, "rows": self.rows, "instants": instants}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.instants["arrived_ns"] = time.perf_counter_ns()


class Indices(Dataset):
    def __init__(self, view):
        self.view = view

    def __len__(self):
        return 240

    def __getitem__(self, i):
        self.view.item()
        return i


class Collate:
    def __init__(self, view, mib):
        self.view = view
        self.array = np.ones(int(mib * 2**20), np.uint8)

    def __call__(self, samples):
        self.view.collating()
        rows = torch.tensor([[float((i * k) % 13) for k in range(32)] for i in samples])
        batch = Payload(self.array, rows)
        self.view.batch_done()
        return batch


def main():
    parser = script_log.arguments(__doc__, host=1)
    parser.add_argument("--mib", type=float, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--context", choices=["fork", "spawn"], default="fork")
    parser.add_argument("--view", help="folder for the workers' own view")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(46)
    view = WorkerView(args.view)
    data = Indices(view)
    loader = DataLoader(
        data,
        batch_size=BATCH,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=Collate(view, args.mib),
        multiprocessing_context=args.context if args.workers else None,
        persistent_workers=args.workers > 0,
    )
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log = script_log.Log("big_handover", args.log)
    losses, handovers = [], []
    log.start()
    for epoch in range(args.epochs):
        batches = iter(loader)
        log.lap("epoch_edge")
        for batch in batches:
            log.lap("data_wait")
            handovers.append(batch.instants)
            x = batch.rows
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
        workers={"planted": "ipc", "per_batch_ns": None},
        handovers=handovers,
        bytes_per_batch=int(args.mib * 2**20),
    )


if __name__ == "__main__":
    main()
