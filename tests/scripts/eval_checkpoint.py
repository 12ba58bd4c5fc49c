"""Training with an evaluation after each epoch (second loader, no_grad) and a checkpoint.

Planted: sleep in both data sets' `__getitem__` (per sample), in forward (also in evaluation), in
the optimizer, in host code, and in what `torch.save` does: an object that is slow to pickle
(`checkpoint`). The scheduler steps and the best result is kept between the epochs (`edge`).
"""

import copy
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log

parser = script_log.arguments(
    __doc__, getitem=0.5, forward=5, backward=3, optimizer=2, host=2, checkpoint=150, edge=60
)
parser.add_argument("--workers", type=int, default=0)


class Digits(Dataset):
    def __init__(self, count, seed, ms):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.rand(count, 1, 8, 8, generator=generator)
        self.y = self.x.flatten(1)[:, :10].argmax(1)
        self.ms = ms

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], self.y[i]


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
        self.conv = nn.Conv2d(1, 8, 3)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(8 * 36, 10)

    def forward(self, x):
        time.sleep(self.plant["forward"] / 1000)
        x = self.dropout(torch.relu(self.conv(x)).flatten(1))
        return self.fc(SlowBackward.apply(x, self.plant["backward"]))


class SlowSGD(torch.optim.SGD):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


class History(list):
    """Pickles slowly."""

    ms = 0.0

    def __reduce__(self):
        time.sleep(self.ms / 1000)
        return (History, (list(self),))


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    model.train()
    return correct / len(loader.dataset)


def main():
    args = parser.parse_args()
    plant = args.plant
    folder = script_log.folder(args.out)
    torch.set_num_threads(1)
    torch.manual_seed(7)
    SlowSGD.ms, History.ms = plant["optimizer"], plant["checkpoint"]
    model = Net(plant)
    optimizer = SlowSGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
    context = "fork" if args.workers else None
    train = DataLoader(
        Digits(320, 0, plant["getitem"]),
        batch_size=8,
        shuffle=True,
        num_workers=args.workers,
        multiprocessing_context=context,
    )
    test = DataLoader(
        Digits(160, 1, plant["getitem"]),
        batch_size=16,
        num_workers=args.workers,
        multiprocessing_context=context,
    )
    log = script_log.Log("eval_checkpoint", args.log)
    losses, scores = [], History()
    log.start()
    for epoch in range(4):
        batches = iter(train)
        log.lap("epoch_edge")
        for x, y in batches:
            log.lap("data_wait")
            optimizer.zero_grad()
            log.lap("other")
            loss = nn.functional.cross_entropy(model(x), y)
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
        scores.append(evaluate(model, test))
        log.lap("evaluation")
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scores": scores},
            os.path.join(folder, f"epoch{epoch}.pt"),
        )
        log.lap("checkpoint")
        scheduler.step()
        if scores[-1] == max(scores):
            best = copy.deepcopy(model.state_dict())
        time.sleep(plant["edge"] / 1000)
        print(
            f"epoch {epoch} loss {losses[-1]:.4f} accuracy {scores[-1]:.3f} ({len(best)} tensors)"
        )
        log.lap("epoch_edge")
    log.finish(
        model.parameters(),
        losses,
        scores=list(scores),
        evaluation_batches=4 * len(test),
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
