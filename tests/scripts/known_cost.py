"""A training whose every cost is known, and clocked where it arises.

Planted, in milliseconds: `compute` of the training thread's CPU per step, or with
`--per sample` per sample; `blocked` of sleep and `cpu` of CPU per sample in `__getitem__`. With
`--view FOLDER` each sample is a line of FOLDER/items-PID.jsonl: when it was made, its CPU time,
its wait for a core, and what it was blocked.

`--trouble` plants what a training may do to its batches and to those who watch it.
"""

import json
import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import script_log

TROUBLES = (
    "none",
    "in_place",
    "two_loaders",
    "lengths",
    "stream",
    "no_loader",
    "swallow",
    "catch",
    "cleanup",
    "takes_out",
)


def busy(ms):
    """Use the thread's CPU for so long; return how long it was."""
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < ms * 1e6:
        pass
    return time.thread_time_ns() - begin


def waited_ns():
    """Return how long this thread has waited for a core so far; 0 where that is not told."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


class Costly:
    """Makes one sample at the planted cost."""

    def __init__(self, plant, view, width=16):
        self.plant, self.view, self.width = plant, view, width

    def make(self, i):
        begin, cpu, waited = time.perf_counter_ns(), time.thread_time_ns(), waited_ns()
        time.sleep(self.plant["blocked"] / 1000)
        busy(self.plant["cpu"])
        end, cpu, waited = time.perf_counter_ns(), time.thread_time_ns() - cpu, waited_ns() - waited
        if self.view:
            line = {"begin_ns": begin, "end_ns": end, "cpu_ns": cpu, "runqueue_ns": waited}
            line.update(blocked_ns=end - begin - cpu - waited, index=i)
            with open(f"{self.view}/items-{os.getpid()}.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        generator = torch.Generator().manual_seed(i)
        return torch.randn(self.width, generator=generator), i % 4


class Rows(Dataset):
    def __init__(self, count, costly):
        self.count, self.costly = count, costly

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.costly.make(i)


class Stream(IterableDataset):
    def __init__(self, count, costly):
        self.count, self.costly = count, costly

    def __iter__(self):
        info = get_worker_info()
        first, stride = (info.id, info.num_workers) if info else (0, 1)
        for i in range(first, self.count, stride):
            yield self.costly.make(i)


class Lengths:
    """Puts samples together into batches of another width each time."""

    def __call__(self, samples):
        width = 4 + sum(label for _, label in samples) % 8
        x = torch.stack([row for row, _ in samples])[:, :width]
        return x, torch.tensor([label for _, label in samples])


class Handmade:
    """Batches without a DataLoader."""

    def __init__(self, count, batch, costly):
        self.count, self.batch, self.costly = count, batch, costly

    def __iter__(self):
        for first in range(0, self.count, self.batch):
            rows = [self.costly.make(i) for i in range(first, first + self.batch)]
            yield torch.stack([row for row, _ in rows]), torch.tensor([y for _, y in rows])


class Training:
    def __init__(self, args, loader, log):
        self.args, self.loader, self.log = args, loader, log
        self.model = nn.Linear(16, 4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.losses, self.seen, self.epochs, self.swallowed = [], [], [], 0

    def step(self, batch):
        if self.args.trouble == "two_loaders":
            batch = [torch.cat(parts) for parts in zip(*batch, strict=True)]
        x, y = batch
        self.seen.append([float(x.sum()), len(x)])
        if self.args.trouble == "in_place":
            x.sub_(x.mean()).mul_(2)
        if self.args.trouble == "takes_out":
            batch.clear()
        if x.shape[1] < 16:
            x = nn.functional.pad(x, (0, 16 - x.shape[1]))
        cpu = busy(self.args.plant["compute"] * (len(x) if self.args.per == "sample" else 1))
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.losses.append(loss.item())
        self.log.lap("forward")
        self.log.end_step(cpu_ns=cpu, samples=len(x))
        self.optimizer.step()

    def swallowing_step(self, batch):
        try:
            self.step(batch)
        except:  # noqa: E722 - what some scripts do
            self.swallowed += 1

    def epoch(self):
        delivered = 0
        step = self.swallowing_step if self.args.trouble == "swallow" else self.step
        batches = (
            zip(*self.loader, strict=True) if self.args.trouble == "two_loaders" else self.loader
        )
        for batch in batches:
            delivered += 1
            step(batch)
        self.epochs.append(delivered)

    def finish(self, **facts):
        facts.update(seen=self.seen, epochs=self.epochs, swallowed=self.swallowed)
        self.log.finish(self.model.parameters(), self.losses, **facts)


def loader_of(args, view):
    costly = Costly(args.plant, view)
    if args.trouble == "no_loader":
        return Handmade(args.samples, args.batch, costly)

    def make(data):
        workers = args.workers
        return DataLoader(
            data,
            batch_size=args.batch,
            shuffle=args.trouble != "stream",
            num_workers=workers,
            collate_fn=Lengths() if args.trouble == "lengths" else None,
            persistent_workers=args.persistent and workers > 0,
            multiprocessing_context="fork" if workers else None,
        )

    if args.trouble == "two_loaders":
        return make(Rows(args.samples, costly)), make(Rows(args.samples, costly))
    kind = Stream if args.trouble == "stream" else Rows
    return make(kind(args.samples, costly))


def main():
    parser = script_log.arguments(__doc__, compute=5, blocked=8, cpu=4)
    parser.add_argument("--per", choices=["step", "sample"], default="step")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--view", help="folder for the samples' own view")
    parser.add_argument("--trouble", choices=TROUBLES, default="none")
    args = parser.parse_args()
    if args.view:
        os.makedirs(args.view, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(3)
    log = script_log.Log("known_cost", args.log)
    training = Training(args, loader_of(args, args.view), log)
    log.start()
    cleaned = []
    try:
        for _ in range(args.epochs):
            training.epoch()
    except SystemExit as error:
        if args.trouble != "catch":
            raise
        training.finish(caught=error.code)
        print("caught")
        sys.exit(0)
    finally:
        if args.trouble == "cleanup":
            cleaned.append(time.perf_counter_ns())
        if args.trouble != "catch":
            training.finish(cleaned=cleaned)


if __name__ == "__main__":
    main()
