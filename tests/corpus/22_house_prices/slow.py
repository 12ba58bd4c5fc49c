"""Regression on house prices with a little experiment tracker."""

import argparse
import json
import os
import time

import numpy as np
import torch
from torch import nn


class Tracker:
    """Keeps a run's metrics in one JSON file that the dashboard polls."""

    def __init__(self, folder, name, config):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, f"{name}.json")
        self.run = {"name": name, "config": config, "started": time.time(), "history": []}

    def log(self, **values):
        self.run["history"].append({"time": time.time() - self.run["started"], **values})
        self.flush()

    def flush(self):
        temporary = self.path + ".part"
        with open(temporary, "w") as file:
            json.dump(self.run, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)


def houses(count, seed=1):
    rng = np.random.default_rng(seed)
    area = rng.lognormal(4.6, 0.35, count)
    age = rng.integers(0, 120, count)
    rooms = np.clip(np.rint(area / 28 + rng.normal(0, 1, count)), 1, 9)
    distance = rng.exponential(6, count)
    extras = rng.normal(0, 1, (count, 12))
    price = 2.1 * area - 0.4 * age + 9 * rooms - 5 * np.log1p(distance) + 4 * extras[:, 0]
    features = np.column_stack([np.log(area), age / 60, rooms / 4, np.log1p(distance), extras])
    x = torch.tensor(features, dtype=torch.float32)
    y = torch.tensor((price - price.mean()) / price.std(), dtype=torch.float32)
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    torch.manual_seed(1)
    x, y = houses(20_000)
    train, valid = slice(0, 18_000), slice(18_000, None)
    model = nn.Sequential(
        nn.Linear(x.shape[1], args.hidden),
        nn.ReLU(),
        nn.Linear(args.hidden, args.hidden),
        nn.ReLU(),
        nn.Linear(args.hidden, 1),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=args.steps)
    tracker = Tracker("runs", "houses", vars(args))
    for step in range(args.steps):
        pick = torch.randint(18_000, (args.batch,))
        prediction = model(x[train][pick]).squeeze(1)
        loss = nn.functional.mse_loss(prediction, y[train][pick])
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        tracker.log(
            step=step,
            loss=loss.item(),
            gradient_norm=norm.item(),
            learning_rate=schedule.get_last_lr()[0],
            spread=prediction.std().item(),
        )
        if step % 100 == 0:
            with torch.no_grad():
                error = (model(x[valid]).squeeze(1) - y[valid]).abs().mean().item()
            print(f"step {step} loss {loss.item():.4f} valid mae {error:.4f}", flush=True)
    tracker.flush()


if __name__ == "__main__":
    main()
