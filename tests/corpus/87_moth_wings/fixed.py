"""Wing span of moths from small light-trap pictures."""

import os
import pathlib
import random
import time

import torch
from torch import nn

SIDE = 40


def light_trap(count, seed):
    """Pictures with their wing spans, one after the other."""
    g = torch.Generator().manual_seed(seed)
    line = torch.linspace(-1, 1, SIDE)
    for _ in range(count):
        span, tilt, lobe = torch.rand(3, generator=g).tolist()
        u = line[None, :] + (tilt - 0.5) * line[:, None]
        wings = ((u.abs() < 0.2 + 0.6 * span) & (line[:, None].abs() < 0.2 + 0.3 * lobe)).float()
        picture = wings + 0.3 * torch.randn(SIDE, SIDE, generator=g)
        yield picture, torch.tensor(span)


class Trainer:
    def __init__(self, samples, folder, width=1024, batch=50, seed=100):
        torch.manual_seed(seed)
        self.samples = list(samples)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.batch = batch
        self.order = random.Random(seed)
        self.model = nn.Sequential(
            nn.Flatten(),
            nn.Linear(SIDE * SIDE, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.epoch = 0
        self.history = []

    def batches(self):
        index = list(range(len(self.samples)))
        self.order.shuffle(index)
        for i in range(0, len(index), self.batch):
            pictures, spans = zip(*(self.samples[k] for k in index[i : i + self.batch]))
            yield torch.stack(pictures), torch.stack(spans)

    def train_epoch(self):
        losses = []
        for pictures, spans in self.batches():
            loss = nn.functional.mse_loss(self.model(pictures).squeeze(1), spans)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.epoch += 1
        self.history.append(sum(losses) / len(losses))

    def save(self):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order": self.order.getstate(),
            "epoch": self.epoch,
            "history": self.history,
        }
        part = self.folder / "last.part"
        torch.save(state, part)
        os.replace(part, self.folder / "last.pt")

    def fit(self, epochs):
        while self.epoch < epochs:
            start = time.time()
            self.train_epoch()
            self.save()
            took = time.time() - start
            print(f"epoch {self.epoch:2d} loss {self.history[-1]:.4f} {took:.2f} s", flush=True)


if __name__ == "__main__":
    trainer = Trainer(light_trap(2400, 0), "data/moths")
    trainer.fit(epochs=14)
