"""An IterableDataset that shards itself among the workers; `--workers` 0, 2 or more.

A sample is parsed from a line of text. Planted: CPU per sample while parsing (`cpu`, of the
thread's own CPU time), sleep per sample while "reading" (`blocked`), sleep in forward, in the
optimizer and in host code. The data set has no length.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import script_log

BATCH = 8


class Lines(IterableDataset):
    def __init__(self, count, plant):
        self.count = count
        self.plant = plant

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.count, step):
            time.sleep(self.plant["blocked"] / 1000)
            yield self.parse(" ".join(str((i * k) % 17) for k in range(16)))

    def parse(self, line):
        until = time.thread_time_ns() + self.plant["cpu"] * 1e6
        while True:
            values = [float(word) for word in line.split()]
            if time.thread_time_ns() >= until:
                break
        return torch.tensor(values) / 17, torch.tensor([sum(values) / 100])


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.layers(x)


class SlowSGD(torch.optim.SGD):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def main():
    parser = script_log.arguments(__doc__, blocked=0.5, cpu=2, forward=5, optimizer=3, host=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=1040)
    args = parser.parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(6)
    SlowSGD.ms = plant["optimizer"]
    model = Net(plant["forward"])
    optimizer = SlowSGD(model.parameters(), lr=0.01)
    loader = DataLoader(
        Lines(args.samples, plant),
        batch_size=BATCH,
        num_workers=args.workers,
        multiprocessing_context="fork" if args.workers else None,
    )
    log = script_log.Log("iterable", args.log)
    losses = []
    log.start()
    batches = iter(loader)
    log.lap("epoch_edge")
    for x, y in batches:
        log.lap("data_wait")
        optimizer.zero_grad()
        log.lap("other")
        loss = (model(x) - y).square().mean()
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        optimizer.step()
        log.lap("optimizer")
        log.end_step()
        losses.append(loss.item())
        if len(losses) % 25 == 0:
            print(f"step {len(losses)} loss {losses[-1]:.5f}")
        log.lap("logging")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")
    log.finish(
        model.parameters(),
        losses,
        workers={
            "planted": "cpu" if plant["cpu"] >= plant["blocked"] else "blocked",
            "per_batch_ns": max(plant["cpu"], plant["blocked"]) * BATCH * 1e6,
            "blocked_ns": plant["blocked"] * BATCH * 1e6,
            "cpu_ns": plant["cpu"] * BATCH * 1e6,
        },
    )


if __name__ == "__main__":
    main()
