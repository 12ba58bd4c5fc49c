"""Ships in a harbour per hour, from counts of the days before."""

import csv
import os
import shutil
import time

import torch
from torch import nn

HOURS, BERTHS = 96, 12


class RunLog:
    """One line per step: loss, learning rate, speed, free disk (the partition fills up at times)."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, "run.csv"), "w", newline="")
        self.writer = csv.writer(self.file)
        self.writer.writerow(["step", "loss", "lr", "seconds", "free_kb"])
        self.folder = folder
        self.begun = time.time()

    def free_kb(self):
        return shutil.disk_usage(self.folder).free // 1024

    def step(self, number, loss, lr):
        elapsed = time.time() - self.begun
        row = [number, f"{loss:.5f}", f"{lr:.2e}", f"{elapsed:.2f}", self.free_kb()]
        self.writer.writerow(row)

    def close(self):
        self.file.close()


def harbour(days=600, seed=75):
    g = torch.Generator().manual_seed(seed)
    hour = torch.arange(days * 24)
    daily = torch.sin(hour[:, None] * 6.2832 / 24 + torch.rand(BERTHS, generator=g) * 6.28)
    tide = torch.sin(hour[:, None] * 6.2832 / 12.42 + torch.rand(BERTHS, generator=g) * 6.28)
    rate = torch.exp(0.6 * daily + 0.5 * tide + 0.5)
    return torch.poisson(rate, generator=g).log1p()


class Forecast(nn.Module):
    def __init__(self, width=448):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(),
            nn.Linear(HOURS * BERTHS, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, BERTHS),
        )

    def forward(self, past):
        return self.net(past)


def main(steps=1100, batch=160):
    torch.manual_seed(75)
    counts = harbour()
    windows = counts.unfold(0, HOURS, 1).transpose(1, 2)[:-1]
    model = Forecast()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=steps)
    log = RunLog("out/harbour")
    for step in range(1, steps + 1):
        start = torch.randint(len(windows), (batch,))
        prediction = model(windows[start])
        loss = nn.functional.smooth_l1_loss(prediction, counts[start + HOURS])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        log.step(step, loss.item(), schedule.get_last_lr()[0])
        if step % 100 == 0:
            print(f"{step}/{steps} loss {loss.item():.4f}", flush=True)
    print(f"{steps / (time.time() - log.begun):.1f} steps/s")
    log.close()


if __name__ == "__main__":
    main()
