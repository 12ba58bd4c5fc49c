"""A training whose every cost is known, and clocked where it arises.

Planted, in milliseconds: `compute` of the training thread's CPU per step, or with
`--per sample` per sample; `blocked` of sleep and `cpu` of CPU per sample in `__getitem__`. With
`--view FOLDER` each batch is a line of FOLDER/batches-PID.jsonl: when it was made, the CPU time of
its thread, its wait for a core, and how long it was blocked.

`--trouble` plants what a training may do to its batches and to those who watch it.
"""

import json
import multiprocessing
import os
import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    default_collate,
    get_worker_info,
)

import script_log

TROUBLES = (
    "none",
    "in_place",
    "two_loaders",
    "lengths",
    "stream",
    "no_loader",
    "swallow",
    "swallow_all",
    "killed",
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


class View:
    """Clocks each batch from its first sample to the end of its collation."""

    def __init__(self, folder):
        self.folder = folder
        self.open = None

    def clocks(self):
        # Again if the thread lost its core in between: the three must be of one instant.
        for _ in range(20):
            before = waited_ns()
            wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
            if waited_ns() == before:
                break
        return wall, cpu, before

    def begins(self):
        if self.folder and self.open is None:
            self.open = self.clocks()

    def ends(self, samples):
        if not self.folder:
            return
        begin, self.open = self.open, None
        wall, cpu, waited = (b - a for a, b in zip(begin, self.clocks(), strict=True))
        line = {"begin_ns": begin[0], "end_ns": begin[0] + wall, "samples": samples}
        line.update(cpu_ns=cpu, runqueue_ns=waited, blocked_ns=wall - cpu - waited)
        with open(f"{self.folder}/batches-{os.getpid()}.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class Costly:
    """Makes one sample at the planted cost."""

    def __init__(self, plant, view, width=16):
        self.plant, self.view, self.width = plant, view, width

    def make(self, i):
        self.view.begins()
        time.sleep(self.plant["blocked"] / 1000)
        busy(self.plant["cpu"])
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


class Collate:
    """Puts samples together; with `lengths` into batches of another width each time."""

    def __init__(self, view, lengths):
        self.view, self.lengths = view, lengths

    def __call__(self, samples):
        if self.lengths:
            width = 4 + sum(label for _, label in samples) % 8
            samples = [(row[:width], label) for row, label in samples]
        batch = default_collate(samples)
        self.view.ends(len(samples))
        return batch


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
        self.graphs, self.anomaly, self.children = [], [], set()
        self.folder = script_log.folder(args.out)

    def step(self, batch):
        if self.args.trouble == "killed" and len(self.losses) == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        for child in multiprocessing.active_children():
            self.children.add(child.pid)
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
        with torch.autograd.set_detect_anomaly(self.args.anomaly):
            self.anomaly.append(torch.is_anomaly_enabled())
            loss.backward()
        self.losses.append(loss.item())
        self.log.lap("forward")
        self.log.end_step(cpu_ns=cpu, samples=len(x))
        self.optimizer.step()

    def forever(self):
        """Train on and on, whatever happens."""
        batches = iter(self.loader)
        while True:
            try:
                self.step(next(batches))
            except StopIteration:
                batches = iter(self.loader)
            except:  # noqa: E722 - what some scripts do
                self.swallowed += 1

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
        if self.args.evaluate:
            self.evaluate()

    def evaluate(self):
        """Evaluate as many do: without no_grad; then save and print."""
        self.model.eval()
        out = self.model(torch.randn(8, 16))
        self.graphs.append(out.requires_grad)
        self.model.train()
        torch.save(self.model.state_dict(), f"{self.folder}/model.pt")
        print(f"epoch {len(self.epochs)}", flush=True)

    def finish(self, **facts):
        facts.update(graphs=self.graphs, saved=os.path.exists(f"{self.folder}/model.pt"))
        facts.update(threads=torch.get_num_threads(), anomaly=self.anomaly)
        facts.update(workers_seen=sorted(self.children))
        facts.update(seen=self.seen, epochs=self.epochs, swallowed=self.swallowed)
        self.log.finish(self.model.parameters(), self.losses, **facts)


def loader_of(args, view):
    view = View(view)
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
            collate_fn=Collate(view, args.trouble == "lengths"),
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
    parser.add_argument("--view", help="folder for the batches' own view")
    parser.add_argument("--evaluate", action="store_true", help="after each epoch")
    parser.add_argument("--anomaly", action="store_true", help="with autograd's anomaly mode")
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
        if args.trouble == "swallow_all":
            training.forever()
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
