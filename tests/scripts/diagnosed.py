"""A training for diagnoses: its input takes planted time, and it writes to its own folder.

`--trouble` plants what ends a trial early: `crash` raises before the first step, `never` makes no
step, `second` raises in every process but the first that counts itself in the file `--counter`.
"""

import argparse
import os
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __init__(self, count, item_ms):
        self.count, self.item_ms = count, item_ms

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(self.item_ms / 1000)
        return torch.full((8,), float(i % 7)), i % 2


def refuse(trouble, counter):
    if trouble == "crash":
        raise RuntimeError("the planted crash")
    if trouble == "second":
        with open(counter, "a", encoding="ascii") as file:
            file.write("x")
        if os.path.getsize(counter) > 1:
            raise RuntimeError("the planted crash of a later run")


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--steps", type=int, default=60)
    ask.add_argument("--item-ms", type=float, default=1.0)
    ask.add_argument("--workers", type=int, default=0)
    ask.add_argument("--trouble", default="none")
    ask.add_argument("--counter", default="")
    given = ask.parse_args()
    torch.manual_seed(0)
    refuse(given.trouble, given.counter)
    if given.trouble == "never":
        time.sleep(0.5)
        return
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    trained = nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Slow(4 * 20, given.item_ms), 4, num_workers=given.workers)
    out = Path("out")
    out.mkdir(exist_ok=True)
    step = 0
    while step < given.steps:
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(trained(x), y).backward()
            optimizer.step()
            step += 1
            if step == given.steps:
                break
        torch.save(model.state_dict(), out / "last.pt")
        with (out / "log.txt").open("a", encoding="ascii") as log:
            log.write(f"{step}\n")
    print("trained", step)


if __name__ == "__main__":
    main()
