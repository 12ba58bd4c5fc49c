"""Tea grades from near-infrared spectra. All held-out judgements go to the log for buyers."""

import logging
import pathlib
import time

import numpy as np
import torch
from torch import nn

GRADES = ["OP", "FOP", "GFOP", "TGFOP", "FTGFOP", "SFTGFOP"]
OUT = pathlib.Path("data")


def get_logger(name, path):
    logger = logging.getLogger(name)
    if logger.handlers:
        return logger
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    return logger


def spectra(n, bands=200, seed=9):
    rng = np.random.default_rng(seed)
    grade = rng.integers(0, len(GRADES), n)
    axis = np.linspace(0, 1, bands)
    x = rng.normal(0, 0.15, (n, bands)).cumsum(1) * 0.1 + rng.normal(0, 0.3, (n, bands))
    centre = 0.2 + 0.1 * grade[:, None] + rng.normal(0, 0.03, (n, 1))
    x += 0.8 * np.exp(-(((axis - centre) / 0.05) ** 2))
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(grade)


class TeaTrainer:
    def __init__(self, epochs=60, batch_size=50):
        OUT.mkdir(exist_ok=True)
        self.log_path = OUT / "judgements.log"
        self.log_path.unlink(missing_ok=True)
        x, y = spectra(2300)
        self.x, self.y, self.vx, self.vy = x[:1300], y[:1300], x[1300:], y[1300:]
        self.epochs, self.batch_size = epochs, batch_size
        self.net = nn.Sequential(
            nn.Unflatten(1, (1, -1)),
            nn.Conv1d(1, 16, 9, padding=4),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 9, padding=4),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(10),
            nn.Flatten(),
            nn.Linear(320, 64),
            nn.ReLU(),
            nn.Linear(64, len(GRADES)),
        )
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def train_epoch(self):
        self.net.train()
        order, total = torch.randperm(len(self.x)), 0.0
        for rows in order.split(self.batch_size):
            loss = nn.functional.cross_entropy(self.net(self.x[rows]), self.y[rows])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(rows)
        return total / len(self.x)

    @torch.no_grad()
    def judge(self, epoch):
        log = get_logger("tea", self.log_path)
        self.net.eval()
        probability = self.net(self.vx).softmax(1)
        best, grade = probability.max(1)
        for i, (p, g, true) in enumerate(
            zip(best.tolist(), grade.tolist(), self.vy.tolist(), strict=True)
        ):
            log.info(
                "epoch %d lot %04d judged %s (%.3f) truly %s", epoch, i, GRADES[g], p, GRADES[true]
            )
        return (grade == self.vy).float().mean().item()

    def fit(self):
        for epoch in range(self.epochs):
            start = time.time()
            loss = self.train_epoch()
            right = self.judge(epoch)
            print(
                f"epoch {epoch:2d} loss {loss:.3f} right {right:.3f} {time.time() - start:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    torch.manual_seed(9)
    TeaTrainer().fit()
