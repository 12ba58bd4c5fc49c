"""Loader workers by `--context` spawn, forkserver or fork; persistent, so that they start once.

Planted: CPU in `__getitem__` (per sample, of the thread's own CPU time), sleep in collate, in
forward, in the optimizer and in host code. The workers are slower than the step. Starting them
comes before the first step.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

import script_log

BATCH = 8


class Waves(Dataset):
    def __init__(self, ms):
        self.ms = ms

    def __len__(self):
        return 400

    def __getitem__(self, i):
        until = time.thread_time_ns() + self.ms * 1e6
        x = torch.linspace(0, i * 0.01, 32)
        while time.thread_time_ns() < until:
            x.sin().asin().clamp(-1, 1)
        return x, torch.tensor([(i % 7) / 7])


class Collate:
    def __init__(self, ms):
        self.ms = ms

    def __call__(self, samples):
        time.sleep(self.ms / 1000)
        return default_collate(samples)


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.net = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.net(x)


class SlowSGD(torch.optim.SGD):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def main():
    parser = script_log.arguments(__doc__, cpu=3, collate=4, forward=4, optimizer=3, host=2)
    parser.add_argument("--context", default="spawn", choices=["spawn", "forkserver", "fork"])
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(13)
    SlowSGD.ms = plant["optimizer"]
    model = Net(plant["forward"])
    optimizer = SlowSGD(model.parameters(), lr=0.05)
    loader = DataLoader(
        Waves(plant["cpu"]),
        batch_size=BATCH,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=Collate(plant["collate"]),
        multiprocessing_context=args.context,
        persistent_workers=True,
    )
    log = script_log.Log("contexts", args.log)
    losses = []
    log.start()
    for epoch in range(3):
        batches = iter(loader)
        log.lap("epoch_edge")
        for x, y in batches:
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
            time.sleep(plant["host"] / 1000)
            log.lap("other")
        log.lap("epoch_edge")
        print(f"epoch {epoch} ({args.context}) loss {losses[-1]:.5f}", flush=True)
        log.lap("logging")
    log.finish(
        model.parameters(),
        losses,
        context=args.context,
        workers={
            "planted": "cpu",
            "per_batch_ns": plant["cpu"] * BATCH * 1e6,
            "cpu_ns": plant["cpu"] * BATCH * 1e6,
            "collate_ns": plant["collate"] * 1e6,
        },
    )


if __name__ == "__main__":
    main()
