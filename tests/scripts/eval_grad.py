"""A sloppy user evaluates in train mode and without no_grad: only no backward follows.

After each epoch a second loader is gone through with the very code of training, less backward and
step. Planted: sleep in `__getitem__` (per sample), forward (also in evaluation), optimizer, host.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log


class Data(Dataset):
    def __init__(self, first, count, ms):
        self.first, self.count, self.ms = first, count, ms

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        x = torch.randn(24, generator=torch.Generator().manual_seed(self.first + i))
        return x, x.abs().sum().unsqueeze(0)


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.body = nn.Sequential(nn.Linear(24, 48), nn.SiLU(), nn.Linear(48, 1))

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.body(x)


class SlowSGD(torch.optim.SGD):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def run_epoch(model, loader, log, optimizer, plant):
    losses = []
    for x, y in loader:
        if optimizer:
            log.lap("data_wait")
        loss = nn.functional.l1_loss(model(x), y)
        if optimizer:
            log.lap("forward")
            optimizer.zero_grad()
            log.lap("other")
            loss.backward()
            log.lap("backward")
            optimizer.step()
            log.lap("optimizer")
            log.end_step()
        losses.append(loss.item())
        if optimizer:
            time.sleep(plant["host"] / 1000)
            log.lap("other")
    log.lap("epoch_edge" if optimizer else "evaluation")
    return losses


def main():
    args = script_log.arguments(__doc__, getitem=0.5, forward=6, optimizer=4, host=3).parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(9)
    model = Net(plant["forward"])
    SlowSGD.ms = plant["optimizer"]
    optimizer = SlowSGD(model.parameters(), lr=0.001)
    train = DataLoader(Data(0, 400, plant["getitem"]), batch_size=8, shuffle=True)
    valid = DataLoader(Data(10_000, 160, plant["getitem"]), batch_size=8)
    log = script_log.Log("eval_grad", args.log)
    losses, scores = [], []
    log.start()
    for epoch in range(3):
        losses += run_epoch(model, train, log, optimizer, plant)
        found = run_epoch(model, valid, log, None, plant)
        scores.append(sum(found) / len(found))
        print(f"epoch {epoch}: train {losses[-1]:.4f} valid {scores[-1]:.4f}")
        log.lap("logging")
    log.finish(
        model.parameters(),
        losses,
        scores=scores,
        evaluation_batches=3 * len(valid),
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
