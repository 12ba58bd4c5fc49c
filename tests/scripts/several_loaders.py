"""Semi-supervised training: two training loaders zipped, and a third loader for validation.

One step takes a labelled and an unlabelled batch, so there are two batches to a step. Planted:
sleep in `__getitem__` of each data set (per sample; the unlabelled one is the slow one), in
forward, in the optimizer and in host code. `loaders` in the log tells them apart.
"""

import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

import script_log


class Labelled(Dataset):
    def __init__(self, count, ms, seed):
        self.ms = ms
        self.x = torch.randn(count, 12, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], int(self.x[i].sum() > 0)


class Unlabelled(Dataset):
    def __init__(self, count, ms):
        self.count, self.ms = count, ms

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return torch.randn(12, generator=torch.Generator().manual_seed(i))


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.net = nn.Sequential(nn.Linear(12, 32), nn.Dropout(0.3), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.net(x)


class SlowAdam(torch.optim.Adam):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def validate(model, loader):
    model.eval()
    with torch.inference_mode():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    parser = script_log.arguments(
        __doc__, labelled=0.3, unlabelled=1, validation=0.5, forward=3, optimizer=4, host=2
    )
    parser.add_argument("--workers", type=int, default=0, help="for the unlabelled loader")
    args = parser.parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(12)
    SlowAdam.ms = plant["optimizer"]
    model = Net(plant["forward"])
    optimizer = SlowAdam(model.parameters(), lr=0.01)
    labelled = DataLoader(Labelled(320, plant["labelled"], 1), batch_size=8, shuffle=True)
    unlabelled = DataLoader(
        Unlabelled(360, plant["unlabelled"]),
        batch_size=8,
        shuffle=True,
        num_workers=args.workers,
        multiprocessing_context="fork" if args.workers else None,
    )
    validation = DataLoader(Labelled(128, plant["validation"], 2), batch_size=16)
    log = script_log.Log("several_loaders", args.log)
    losses, scores = [], []
    log.start()
    for epoch in range(3):
        both = zip(labelled, unlabelled)  # noqa: B905
        log.lap("epoch_edge")
        for (x, y), u in both:
            log.lap("data_wait")
            optimizer.zero_grad()
            log.lap("other")
            one, two = model(u), model(u)
            consistency = F.mse_loss(one.softmax(1), two.softmax(1))
            loss = F.cross_entropy(model(x), y) + consistency
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
        scores.append(validate(model, validation))
        log.lap("evaluation")
        print(f"epoch {epoch} loss {losses[-1]:.4f} accuracy {scores[-1]:.3f}")
        log.lap("logging")
    log.finish(
        model.parameters(),
        losses,
        scores=scores,
        batches=2 * len(losses),
        evaluation_batches=3 * len(validation),
        workers={"planted": "blocked", "per_batch_ns": plant["unlabelled"] * 8e6},
        loaders={
            "Labelled": {"batches": len(losses), "per_batch_ns": plant["labelled"] * 8e6},
            "Unlabelled": {"batches": len(losses), "per_batch_ns": plant["unlabelled"] * 8e6},
            "validation": {
                "batches": 3 * len(validation),
                "per_batch_ns": plant["validation"] * 16e6,
            },
        },
    )


if __name__ == "__main__":
    main()
