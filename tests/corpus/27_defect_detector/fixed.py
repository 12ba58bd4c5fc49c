"""Metal surface defects, with averaged weights for the test."""

import copy
import time
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    classes: int = 6
    images: int = 1200
    side: int = 32
    batch: int = 16
    epochs: int = 4
    decay: float = 0.998
    widths: list = field(default_factory=lambda: [24, 48, 96, 512])


def surfaces(s, generator):
    """Rolled metal with scratches, pits or stains."""
    label = torch.randint(s.classes, (s.images,), generator=generator)
    grain = torch.randn(s.images, 1, 1, s.side, generator=generator).expand(-1, 1, s.side, -1)
    image = 0.4 * grain + 0.2 * torch.randn(s.images, 1, s.side, s.side, generator=generator)
    for i, c in enumerate(label.tolist()):
        at = torch.randint(4, s.side - 4, (2,), generator=generator).tolist()
        if c == 0:
            image[i, 0, at[0], :] += 2
        elif c == 1:
            image[i, 0, :, at[1]] += 2
        elif c < 4:
            size = 2 if c == 2 else 4
            image[i, 0, at[0] : at[0] + size, at[1] : at[1] + size] -= 2
        elif c == 4:
            image[i, 0] += torch.eye(s.side) * 2
    return image, label


def stage(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class Detector(nn.Module):
    def __init__(self, s):
        super().__init__()
        pairs = zip([1, *s.widths[:-1]], s.widths, strict=True)
        self.stages = nn.Sequential(*[stage(a, b, 2) for a, b in pairs])
        self.memory = nn.Sequential(nn.Linear(s.widths[-1] * 4, 1024), nn.ReLU())
        self.head = nn.Linear(1024, s.classes)

    def forward(self, x):
        return self.head(self.memory(self.stages(x).flatten(1)))


class Average:
    """Exponential moving average of parameters and buffers."""

    def __init__(self, model, decay):
        self.decay, self.shadow = decay, copy.deepcopy(model).eval()

    @torch.no_grad()
    def update(self, model):
        latest = model.state_dict()
        for name, value in self.shadow.state_dict().items():
            if value.is_floating_point():
                value.lerp_(latest[name], 1 - self.decay)
            else:
                value.copy_(latest[name])


def main():
    s = Settings()
    torch.manual_seed(30)
    images, labels = surfaces(s, torch.Generator().manual_seed(30))
    model = Detector(s)
    average = Average(model, s.decay)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    held_out = slice(1000, None)
    for epoch in range(s.epochs):
        start = time.time()
        for index in torch.randperm(1000).split(s.batch):
            loss = F.cross_entropy(model(images[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
        with torch.no_grad():
            right = average.shadow(images[held_out]).argmax(1) == labels[held_out]
        took = time.time() - start
        print(f"epoch {epoch}: loss {loss.item():.3f} acc {right.float().mean():.3f} {took:.1f}s")


if __name__ == "__main__":
    main()
