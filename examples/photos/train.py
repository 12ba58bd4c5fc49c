"""Train a small residual network to tell which photograph a crop was cut from.

Once: `python make_photos.py --to photos`. Then: `python train.py`.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    """A folder of JPEGs, one sub-folder per class."""

    def __init__(self, root: Path, size: int, augment: bool) -> None:
        self.classes = sorted(folder.name for folder in root.iterdir() if folder.is_dir())
        self.files = [
            (path, label)
            for label, name in enumerate(self.classes)
            for path in sorted((root / name).glob("*.jpg"))
        ]
        self.size = size
        self.augment = augment

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.files[index]
        with Image.open(path) as image:
            image = image.convert("RGB")
        image = self.random_crop(image) if self.augment else self.centre_crop(image)
        pixels = np.asarray(image, dtype=np.float32) / 255.0
        if self.augment and random.random() < 0.5:
            pixels = pixels[:, ::-1]
        pixels = (pixels - 0.5) / 0.25
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy()), label

    def random_crop(self, image: Image.Image) -> Image.Image:
        side = int(min(image.size) * random.uniform(0.5, 1.0))
        left = random.randint(0, image.width - side)
        top = random.randint(0, image.height - side)
        box = (left, top, left + side, top + side)
        return image.resize((self.size, self.size), Image.Resampling.BICUBIC, box=box)

    def centre_crop(self, image: Image.Image) -> Image.Image:
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        box = (left, top, left + side, top + side)
        return image.resize((self.size, self.size), Image.Resampling.BICUBIC, box=box)


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
            nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.around = nn.Sequential(
            nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.around(x))


def residual_network(classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        Block(16, 16, 1),
        Block(16, 32, 2),
        Block(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader, device: torch.device) -> float:
    model.eval()
    right = total = 0
    for images, labels in loader:
        guesses = model(images.to(device)).argmax(dim=1)
        right += (guesses == labels.to(device)).sum().item()
        total += len(labels)
    return right / total


def train_epoch(
    model: nn.Module,
    loader: DataLoader,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    log_every: int,
) -> None:
    model.train()
    criterion = nn.CrossEntropyLoss()
    for step, (images, labels) in enumerate(loader, start=1):
        images, labels = images.to(device), labels.to(device)
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % log_every == 0:
            print(f"  step {step:3d}/{len(loader)}  loss {loss.item():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=Path, default=Path("photos"))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--size", type=int, default=96, help="side of the network's input, pixels")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoint.pt"))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = Photos(arguments.photos / "train", arguments.size, augment=True)
    val_set = Photos(arguments.photos / "val", arguments.size, augment=False)
    loading = {"batch_size": arguments.batch_size, "num_workers": arguments.workers}
    train_loader = DataLoader(train_set, shuffle=True, drop_last=True, **loading)
    val_loader = DataLoader(val_set, **loading)
    model = residual_network(len(train_set.classes)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.lr)
    print(f"{len(train_set)} photographs, {len(train_set.classes)} classes, on {device}")

    for epoch in range(1, arguments.epochs + 1):
        began = time.perf_counter()
        train_epoch(model, train_loader, optimizer, device, arguments.log_every)
        accuracy = evaluate(model, val_loader, device)
        torch.save({"model": model.state_dict(), "epoch": epoch}, arguments.checkpoint)
        seconds = time.perf_counter() - began
        print(f"epoch {epoch}: accuracy {accuracy:.1%}, {seconds:.1f} s")


if __name__ == "__main__":
    main()
