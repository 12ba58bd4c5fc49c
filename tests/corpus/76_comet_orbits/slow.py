"""Orbital elements of comets from short arcs of observations."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ELEMENTS, SIGHTINGS = 5, 40


class Arcs(Dataset):
    """Noise is drawn afresh whenever an arc is asked for."""

    def __init__(self, count, seed, noise=0.02):
        g = torch.Generator().manual_seed(seed)
        self.elements = torch.rand(count, ELEMENTS, generator=g)
        e, phase, speed, tilt, size = self.elements[:, :, None].unbind(1)
        t = torch.linspace(0, 1, SIGHTINGS)
        anomaly = 6.28 * (phase + 0.5 * speed * t)
        r = (0.5 + size) * (1 - 0.5 * e**2) / (1 + 0.5 * e * torch.cos(anomaly))
        self.arcs = torch.cat(
            [r * torch.cos(anomaly), r * torch.sin(anomaly) * torch.cos(tilt), 1 / r], 1
        )
        self.noise = noise

    def __len__(self):
        return len(self.arcs)

    def __getitem__(self, i):
        arc = self.arcs[i]
        return arc + self.noise * torch.randn_like(arc), self.elements[i]


class OrbitNet(nn.Module):
    def __init__(self, width=1024, depth=4):
        super().__init__()
        self.first = nn.Linear(3 * SIGHTINGS, width)
        self.middle = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.last = nn.Linear(width, ELEMENTS)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.middle:
            x = x + torch.relu(layer(x))
        return self.last(x)


def validate(model, loader):
    model.eval()
    error = 0.0
    with torch.no_grad():
        for arcs, elements in loader:
            error += (model(arcs) - elements).abs().mean(1).sum().item()
    model.train()
    return error / len(loader.dataset)


def main(epochs=8):
    torch.manual_seed(85)
    train = DataLoader(Arcs(6144, 0), batch_size=256, shuffle=True, num_workers=0)
    valid = DataLoader(Arcs(256, 1), batch_size=256)
    model = OrbitNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    for epoch in range(epochs):
        start = time.time()
        for arcs, elements in train:
            loss = nn.functional.mse_loss(model(arcs), elements)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        took = time.time() - start
        error = validate(model, valid)
        plateau.step(error)
        print(f"epoch {epoch} error {error:.4f} {took:.2f}s", flush=True)


if __name__ == "__main__":
    main()
