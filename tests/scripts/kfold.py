"""Cross-validation: three models one after another in one process, each with its own loaders.

Between two trainings a new model is made (`set_up`) and the old one is validated. Each step of the
log has the number of its `fold`. Planted: sleep in `__getitem__` (per sample), in forward (also in
validation; each fold has another length), in the optimizer, in host code, and in set-up.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

import script_log


class Points(Dataset):
    def __init__(self, ms):
        self.x = torch.randn(480, 10, generator=torch.Generator().manual_seed(1))
        self.ms = ms

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], int(self.x[i, :3].sum() > 0)


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.net(x)


class SlowSGD(torch.optim.SGD):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def train_fold(fold, data, plant, log, losses):
    held_out = list(range(fold * 160, fold * 160 + 160))
    kept = [i for i in range(480) if i not in set(held_out)]
    train = DataLoader(Subset(data, kept), batch_size=8, shuffle=True)
    valid = DataLoader(Subset(data, held_out), batch_size=16)
    torch.manual_seed(100 + fold)
    model = Net(plant["forward"] * (fold + 1))
    optimizer = SlowSGD(model.parameters(), lr=0.1)
    time.sleep(plant["set_up"] / 1000)
    log.lap("set_up")
    for x, y in train:
        log.lap("data_wait")
        optimizer.zero_grad()
        log.lap("other")
        loss = nn.functional.cross_entropy(model(x), y)
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        optimizer.step()
        log.lap("optimizer")
        log.end_step(fold=fold)
        losses.append(loss.item())
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in valid)
    log.lap("evaluation")
    print(f"fold {fold}: accuracy {right / 160:.3f}")
    return model


def main():
    args = script_log.arguments(
        __doc__, getitem=0.5, forward=4, optimizer=3, host=3, set_up=200
    ).parse_args()
    torch.set_num_threads(1)
    SlowSGD.ms = args.plant["optimizer"]
    data = Points(args.plant["getitem"])
    log = script_log.Log("kfold", args.log)
    losses = []
    log.start()
    models = [train_fold(fold, data, args.plant, log, losses) for fold in range(3)]
    log.finish(
        [p for model in models for p in model.parameters()],
        losses,
        trainings=3,
        evaluation_batches=30,
        workers={"planted": "blocked", "per_batch_ns": args.plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
