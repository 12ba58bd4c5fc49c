"""Find the shoe that left a print: metric learning with a proxy loss, scored by recall."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn

SIDE, MODELS = 32, 40


def prints(count, seed):
    """Sole patterns: each shoe model has its own pair of waves, prints are shifted and smeared."""
    shoes = torch.Generator().manual_seed(71)
    frequency = torch.randint(2, 9, (MODELS, 2, 2), generator=shoes).float()
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(MODELS, (count,), generator=generator)
    axis = torch.linspace(0, 2 * torch.pi, SIDE)
    phase = 6.28 * torch.rand(count, 2, 1, 1, generator=generator)
    f = frequency[label]
    wave = torch.sin(f[:, :, :1, None] * axis[:, None] + f[:, :, 1:, None] * axis + phase)
    noise = 0.5 * torch.randn(count, 3, SIDE, SIDE, generator=generator)
    return wave.prod(1, keepdim=True) + noise, label


class Embedder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 128, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.project = nn.Linear(512, width)

    def forward(self, images):
        return F.normalize(self.project(self.features(images).flatten(1)), dim=1)


class ProxyLoss(nn.Module):
    def __init__(self, width=64, scale=12.0):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(MODELS, width))
        self.scale = scale

    def forward(self, embedding, label):
        return F.cross_entropy(self.scale * embedding @ F.normalize(self.proxies, dim=1).T, label)


class RecallMeter:
    """Share of queries whose nearest prints in the archive hold one of the same shoe."""

    def __init__(self, queries, archive, batch_size=16, ranks=(1, 5)):
        self.queries, self.archive = queries, archive
        self.batch_size, self.ranks = batch_size, ranks

    def describe(self, model, images):
        return torch.cat([model(part) for part in images.split(100)])

    def nearest(self, model, images):
        archive_images, archive_labels = self.archive
        similarity = model(images) @ self.describe(model, archive_images).T
        return archive_labels[similarity.topk(max(self.ranks), dim=1).indices]

    @torch.no_grad()
    def __call__(self, model):
        model.eval()
        hits = dict.fromkeys(self.ranks, 0)
        images, labels = self.queries
        for part, wanted in zip(
            images.split(self.batch_size), labels.split(self.batch_size), strict=True
        ):
            found = self.nearest(model, part) == wanted[:, None]
            for rank in self.ranks:
                hits[rank] += found[:, :rank].any(1).sum().item()
        model.train()
        return {f"recall@{rank}": count / len(labels) for rank, count in hits.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=40)
    args = parser.parse_args()

    torch.manual_seed(71)
    images, labels = prints(1200, 0)
    meter = RecallMeter(prints(160, 1), prints(400, 2))
    model, criterion = Embedder(), ProxyLoss()
    parameters = [*model.parameters(), *criterion.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    begin = time.time()
    for epoch in range(args.epochs):
        for index in torch.randperm(len(images)).split(args.batch_size):
            loss = criterion(model(images[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scores = " ".join(f"{k} {v:.3f}" for k, v in meter(model).items())
        print(f"epoch {epoch} loss {loss.item():.3f} {scores}", flush=True)
    print(f"done in {time.time() - begin:.1f} s")


if __name__ == "__main__":
    main()
