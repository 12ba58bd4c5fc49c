"""A plain loop whose loader has two forked workers; `--persistent` keeps them between epochs.

Planted: the workers together are slower than the step, so the loop waits for data. A sample costs
CPU in `__getitem__` (`cpu`, per sample, of the thread's own CPU time) and sleep (`blocked`, per
sample); collate sleeps. The loop sleeps in forward, in backward and in host code.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

import script_log

BATCH = 8


class Images(Dataset):
    def __init__(self, count, plant):
        self.count = count
        self.plant = plant

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(self.plant["blocked"] / 1000)
        generator = torch.Generator().manual_seed(i)
        image = torch.randn(3, 8, 8, generator=generator)
        until = time.thread_time_ns() + self.plant["cpu"] * 1e6
        while time.thread_time_ns() < until:
            image = image.flip(-1).flip(-1)
        return image, i % 4


class Collate:
    def __init__(self, plant):
        self.plant = plant

    def __call__(self, samples):
        time.sleep(self.plant["collate"] / 1000)
        return default_collate(samples)


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ms):
        ctx.ms = ms
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.ms / 1000)
        return grad, None


class Net(nn.Module):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = torch.relu(self.conv(x)).mean((2, 3))
        time.sleep(self.plant["forward"] / 1000)
        return self.head(SlowBackward.apply(x, self.plant["backward"]))


def main():
    parser = script_log.arguments(
        __doc__, blocked=3, cpu=0.5, collate=6, forward=4, backward=3, host=2
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--persistent", action="store_true")
    args = parser.parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(1)

    model = Net(plant)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(
        Images(640, plant),
        batch_size=BATCH,
        shuffle=True,
        num_workers=args.workers,
        collate_fn=Collate(plant),
        persistent_workers=args.persistent,
        multiprocessing_context="fork" if args.workers else None,
    )
    log = script_log.Log("plain_workers", args.log)
    losses = []
    log.start()
    for epoch in range(2):
        batches = iter(loader)
        log.lap("epoch_edge")
        for images, labels in batches:
            log.lap("data_wait")
            output = model(images)
            loss = criterion(output, labels)
            log.lap("forward")
            optimizer.zero_grad()
            log.lap("other")
            loss.backward()
            log.lap("backward")
            optimizer.step()
            log.lap("optimizer")
            log.end_step()
            losses.append(loss.item())
            if len(losses) % 20 == 0:
                print(f"[{epoch}] step {len(losses):4d} loss {losses[-1]:.4f}", flush=True)
            log.lap("logging")
            time.sleep(plant["host"] / 1000)
            log.lap("other")
        log.lap("epoch_edge")

    per_batch = {
        "blocked_ns": plant["blocked"] * BATCH * 1e6,
        "cpu_ns": plant["cpu"] * BATCH * 1e6,
        "collate_ns": plant["collate"] * 1e6,
    }
    largest = max(per_batch, key=per_batch.__getitem__)
    log.finish(
        model.parameters(),
        losses,
        workers={
            "planted": largest.removesuffix("_ns"),
            "per_batch_ns": per_batch[largest],
            **per_batch,
        },
    )


if __name__ == "__main__":
    main()
