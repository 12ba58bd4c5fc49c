"""Bleached or healthy coral, with a look at the activations of each layer."""

import time
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F

SIDE = 32


def reef(count, seed):
    g = torch.Generator().manual_seed(seed)
    stage = torch.randint(4, (count,), generator=g)
    blob = torch.randn(count, 1, 6, 6, generator=g)
    polyp = F.interpolate(blob, SIDE, mode="bilinear", align_corners=False)
    tint = torch.tensor([[0.2, 0.6, 0.5], [0.5, 0.6, 0.5], [0.8, 0.7, 0.6], [0.9, 0.9, 0.9]])
    image = polyp * 0.3 + tint[stage][:, :, None, None]
    return image + 0.3 * torch.randn(count, 3, SIDE, SIDE, generator=g), stage


class CoralNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.deep = nn.Conv2d(width, 2 * width, 3, padding=1, stride=2)
        self.head = nn.Linear(2 * width, 4)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(self.mid(x))
        x = F.relu(self.deep(x))
        return self.head(x.mean((2, 3)))


class ActivationReport:
    """Mean, spread and share of dead units per layer, averaged over an epoch."""

    def __init__(self):
        self.sums, self.counts = defaultdict(lambda: torch.zeros(3)), defaultdict(int)

    def hook(self, name):
        def see(module, inputs, output):
            seen = output.detach()
            dead = (seen <= 0).float().mean()
            self.sums[name] += torch.stack([seen.mean(), seen.std(), dead])
            self.counts[name] += 1

        return see

    def attach(self, model):
        handles = []
        for name, module in model.named_modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                handles.append(module.register_forward_hook(self.hook(name)))
        return handles

    def lines(self):
        for name, total in self.sums.items():
            mean, spread, dead = (total / self.counts[name]).tolist()
            yield f"    {name:5s} mean {mean:+.3f} spread {spread:.3f} dead {dead:.2f}"


def train_epoch(model, optimizer, images, stages, batch=32):
    report = ActivationReport()
    handles = report.attach(model)
    losses = []
    for index in torch.randperm(len(images)).split(batch):
        loss = F.cross_entropy(model(images[index]), stages[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    for handle in handles:
        handle.remove()
    return sum(losses) / len(losses), report


def main():
    torch.manual_seed(79)
    images, stages = reef(800, 0)
    model = CoralNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(16):
        start = time.time()
        loss, report = train_epoch(model, optimizer, images, stages)
        print(f"epoch {epoch:2d} loss {loss:.3f} in {time.time() - start:.2f} s", flush=True)
        if epoch % 5 == 0:
            print("\n".join(report.lines()))


if __name__ == "__main__":
    main()
