"""A thread of the script goes through the DataLoader and fills a queue; the loop takes from it.

With the defaults the thread is faster than the step, so the loop hardly waits: the thread's time
in the loader (`thread_ns`) is not the loop's wait. With `--plant getitem=5` the loop starves, and
its `data_wait` here is its time in `queue.get`. Planted: sleep in `__getitem__` (per sample),
forward, backward, optimizer, host code.
"""

import queue
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log


class Points(Dataset):
    def __init__(self, ms):
        self.x = torch.randn(1200, 8)
        self.ms = ms

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], self.x[i].norm().unsqueeze(0)


class Prefetcher:
    def __init__(self, loader, depth=3):
        self.loader = loader
        self.queue = queue.Queue(depth)
        self.thread_ns = 0
        threading.Thread(target=self.fill, daemon=True).start()

    def fill(self):
        begin = time.perf_counter_ns()
        for batch in self.loader:
            self.thread_ns += time.perf_counter_ns() - begin
            self.queue.put(batch)
            begin = time.perf_counter_ns()
        self.queue.put(None)

    def __iter__(self):
        while (batch := self.queue.get()) is not None:
            yield batch


class Net(nn.Module):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Softplus(), nn.Linear(16, 1))

    def forward(self, x):
        time.sleep(self.plant["forward"] / 1000)
        x = self.net(x)
        x.register_hook(lambda grad: time.sleep(self.plant["backward"] / 1000))
        return x


class SlowSGD(torch.optim.SGD):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def main():
    args = script_log.arguments(
        __doc__, getitem=0.9, forward=7, backward=5, optimizer=4, host=3
    ).parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(24)
    SlowSGD.ms = plant["optimizer"]
    model = Net(plant)
    optimizer = SlowSGD(model.parameters(), lr=0.01)
    loader = DataLoader(
        Points(plant["getitem"]),
        batch_size=8,
        shuffle=True,
        generator=torch.Generator().manual_seed(5),
    )
    log = script_log.Log("manual_thread", args.log)
    losses = []
    log.start()
    prefetcher = Prefetcher(loader)
    for x, y in prefetcher:
        log.lap("data_wait")
        optimizer.zero_grad()
        log.lap("other")
        loss = nn.functional.mse_loss(model(x), y)
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        optimizer.step()
        log.lap("optimizer")
        log.end_step()
        losses.append(loss.item())
        if len(losses) % 30 == 0:
            print(f"step {len(losses)} loss {losses[-1]:.4f}")
        log.lap("logging")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")
    log.finish(
        model.parameters(),
        losses,
        thread_ns=prefetcher.thread_ns,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
