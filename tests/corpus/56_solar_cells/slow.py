"""Find cracks in electroluminescence images of solar cells."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 40


class Cells(Dataset):
    def __init__(self, count, seed):
        self.count, self.seed = count, seed
        axis = torch.linspace(-1, 1, SIDE)
        self.y, self.x = torch.meshgrid(axis, axis, indexing="ij")

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i >= self.count:
            raise IndexError(i)
        generator = torch.Generator().manual_seed(self.seed + i)
        busbars = torch.cos(12 * self.x) * 0.2
        image = 0.8 + busbars + 0.15 * torch.randn(SIDE, SIDE, generator=generator)
        crack = i % 2
        if crack:
            slope, offset = torch.randn(2, generator=generator).tolist()
            image[(self.y - slope * self.x - offset / 3).abs() < 0.06] -= 0.5
        return image[None], crack


class Inspector(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Linear(2 * width, 1)

    def forward(self, x):
        return self.head(self.body(x).amax((2, 3))).squeeze(1)


@torch.no_grad()
def evaluate(model, cells):
    model.eval()
    right = 0
    for image, crack in cells:
        logit = model(image[None])
        right += int((logit > 0).item() == crack)
    model.train()
    return right / len(cells)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()

    torch.manual_seed(59)
    loader = DataLoader(
        Cells(160, 0),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=2,
    )
    cells = [Cells(150, 10_000)[i] for i in range(150)]
    model = Inspector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    start = time.time()
    for epoch in range(args.epochs):
        for image, crack in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(image), crack.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = evaluate(model, cells)
        print(f"{epoch} {loss.item():.4f} {score:.3f}", flush=True)
    print(f"{args.epochs} epochs in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
