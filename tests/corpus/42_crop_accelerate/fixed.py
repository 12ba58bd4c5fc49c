"""Segment crop types in small satellite time series with accelerate."""

import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

CROPS, DATES, SIDE = 6, 8, 24


class Fields(Dataset):
    """Patches with two or three fields; each crop greens up at its own time."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        dates = torch.linspace(0, 1, DATES)
        peak = torch.linspace(0.2, 0.8, CROPS)
        curves = torch.exp(-((dates - peak[:, None]) ** 2) / 0.05)
        self.labels = torch.randint(CROPS, (count, 2, 2), generator=generator)
        self.labels = self.labels.repeat_interleave(SIDE // 2, 1).repeat_interleave(SIDE // 2, 2)
        noise = torch.randn(count, DATES, SIDE, SIDE, generator=generator)
        self.images = curves[self.labels].permute(0, 3, 1, 2) + 0.4 * noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class Confusion:
    def __init__(self):
        self.matrix = [[0] * CROPS for _ in range(CROPS)]

    def update(self, guesses, truths):
        pairs = torch.bincount(truths.flatten() * CROPS + guesses.flatten(), minlength=CROPS**2)
        for truth, row in enumerate(pairs.view(CROPS, CROPS).tolist()):
            self.matrix[truth] = [a + b for a, b in zip(self.matrix[truth], row, strict=True)]

    def report(self):
        total = sum(map(sum, self.matrix))
        right = sum(self.matrix[i][i] for i in range(CROPS))
        ious = []
        for i in range(CROPS):
            union = sum(self.matrix[i]) + sum(row[i] for row in self.matrix) - self.matrix[i][i]
            ious.append(self.matrix[i][i] / max(union, 1))
        return {"accuracy": right / total, "miou": sum(ious) / CROPS}


def segmenter(width=32):
    return nn.Sequential(
        nn.Conv2d(DATES, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, CROPS, 1),
    )


def main():
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(43)
    model = segmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = DataLoader(Fields(1600, 0), batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        confusion, start = Confusion(), time.time()
        for step, (images, labels) in enumerate(loader, 1):
            logits = model(images)
            loss = criterion(logits, labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            confusion.update(logits.argmax(1), labels)
            if step % 50 == 0:
                scores = confusion.report()
                rate = step / (time.time() - start)
                words = " ".join(f"{k} {v:.3f}" for k, v in scores.items())
                accelerator.print(f"epoch {epoch} step {step} {words} {rate:.2f} it/s", flush=True)


if __name__ == "__main__":
    main()
