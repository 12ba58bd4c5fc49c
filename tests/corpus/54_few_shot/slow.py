"""Prototypical networks: learn to tell glyphs of unseen alphabets apart."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

WAYS, SHOTS, QUERIES, SIDE = 5, 3, 5, 24


class Glyphs(Dataset):
    """Random strokes; a class is a stroke pattern, a sample is a wobbly copy of it."""

    def __init__(self, classes, seed=57):
        rng = np.random.default_rng(seed)
        self.strokes = rng.uniform(4, SIDE - 4, (classes, 5, 2))

    def __len__(self):
        return len(self.strokes) * 20

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        points = self.strokes[i // 20] + rng.normal(0, 0.7, (5, 2))
        image = np.zeros((SIDE, SIDE), dtype=np.float32)
        for a, b in zip(points[:-1], points[1:], strict=True):
            line = a + np.linspace(0, 1, 30)[:, None] * (b - a)
            y, x = np.clip(np.rint(line), 0, SIDE - 1).astype(int).T
            image[y, x] = 1
        return torch.from_numpy(image)[None], i // 20


class Episodes(Sampler):
    """Indices of one episode after the other."""

    def __init__(self, classes, count, seed=0):
        self.classes, self.count = classes, count
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            chosen = self.rng.choice(self.classes, WAYS, replace=False)
            samples = [self.rng.choice(20, SHOTS + QUERIES, replace=False) for _ in chosen]
            yield [c * 20 + s for c, group in zip(chosen, samples, strict=True) for s in group]


def conv(cin, cout):
    layers = [nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers)


def prototype_loss(embedding):
    z = embedding.view(WAYS, SHOTS + QUERIES, -1)
    prototypes = z[:, :SHOTS].mean(1)
    queries = z[:, SHOTS:].flatten(0, 1)
    target = torch.arange(WAYS).repeat_interleave(QUERIES)
    scores = -(torch.cdist(queries, prototypes) ** 2)
    return nn.functional.cross_entropy(scores, target), (scores.argmax(1) == target).float().mean()


def main(episodes=200):
    torch.manual_seed(57)
    data = Glyphs(120)
    loader = DataLoader(data, batch_sampler=Episodes(120, episodes), num_workers=2)
    model = nn.Sequential(conv(1, 32), conv(32, 48), conv(48, 64), nn.Flatten(), nn.Linear(576, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start, scores = time.time(), []
    for episode in range(1, episodes + 1):
        images, _ = next(iter(loader))
        loss, accuracy = prototype_loss(model(images))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scores.append(accuracy.item())
        if episode % 25 == 0:
            print(f"episode {episode} acc {np.mean(scores[-25:]):.3f}", flush=True)
    print(f"{(time.time() - start) / episodes:.4f} s/episode")


if __name__ == "__main__":
    main()
