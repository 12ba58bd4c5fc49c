"""Edible or not: train a new head on a backbone from another task."""

import time
from pathlib import Path

import torch
from torch import nn

SIDE, CLASSES = 48, 5


class Backbone(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        layers, last = [], 3
        for i in range(3):
            out = width * 2**i
            layers += [nn.Conv2d(last, out, 3, padding=1), nn.GroupNorm(4, out), nn.ReLU()]
            layers += [nn.Conv2d(out, out, 3, stride=2, padding=1), nn.ReLU()]
            last = out
        self.layers = nn.Sequential(*layers)
        self.width = last

    def forward(self, x):
        return self.layers(x).mean((2, 3))


class Classifier(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Sequential(
            nn.Linear(backbone.width, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, CLASSES)
        )

    def forward(self, x):
        features = self.backbone(x)
        return self.head(features)


def mushrooms(count, seed):
    """Caps and stems with a colour and a shape for each class."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(CLASSES, (count,), generator=generator)
    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    images = 0.3 * torch.rand(count, 3, SIDE, SIDE, generator=generator)
    for image, c in zip(images, label.tolist(), strict=True):
        cap = (x / (0.4 + 0.1 * c)) ** 2 + ((y + 0.2) / 0.3) ** 2 < 1
        stem = (x.abs() < 0.12) & (y > 0) & (y < 0.9)
        image[c % 3] += 0.6 * cap + 0.2 * stem
        image[(c + 1) % 3] += 0.3 * stem
    return images, label


def load_backbone():
    """The weights would come from the other task; here they are drawn once and kept."""
    path = Path("data/backbone.pt")
    backbone = Backbone()
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        torch.save(backbone.state_dict(), path)
    backbone.load_state_dict(torch.load(path))
    return backbone


def main():
    torch.manual_seed(53)
    images, labels = mushrooms(1200, 0)
    test_images, test_labels = mushrooms(200, 1)
    model = Classifier(load_backbone())
    optimizer = torch.optim.Adam(model.head.parameters(), lr=2e-3)
    for epoch in range(3):
        began, total = time.time(), 0.0
        for index in torch.randperm(len(labels)).split(16):
            loss = nn.functional.cross_entropy(model(images[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        took = time.time() - began
        with torch.no_grad():
            right = (model(test_images).argmax(1) == test_labels).float().mean().item()
        print(f"epoch {epoch} loss {total:.1f} test {right:.3f} {took:.1f} s", flush=True)


if __name__ == "__main__":
    main()
