"""Ten runes drawn with the mouse, for a page that recognises them in the browser."""

import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

SIDE = 28
RUNES = ["fehu", "uruz", "thurisaz", "ansuz", "raido", "kaunan", "gebo", "wunjo", "isaz", "jera"]


def sketch(rng, count):
    """Strokes of each rune, moved about, thick or thin, with noise."""
    grid = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), -1)
    plates = np.zeros((len(RUNES), SIDE, SIDE), np.float32)
    for plate in plates:
        for _ in range(3):
            a, b = rng.uniform(5, 23, (2, 2))
            for part in np.linspace(0, 1, 30):
                point = a + part * (b - a)
                ink = np.exp(-((grid - point) ** 2).sum(-1) / 2)
                plate[:] = np.maximum(plate, ink)
    runes = rng.integers(len(RUNES), size=count)
    drawn = plates[runes] ** rng.uniform(0.5, 2, (count, 1, 1))
    moves = rng.integers(-3, 4, (count, 2))
    drawn = np.stack([np.roll(d, m, (0, 1)) for d, m in zip(drawn, moves)])
    drawn = drawn + rng.normal(0, 0.25, drawn.shape)
    return torch.from_numpy(drawn.astype(np.float32)), torch.from_numpy(runes)


class RuneNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(SIDE * SIDE, 640)
        self.fc2 = nn.Linear(640, 400)
        self.fc3 = nn.Linear(400, len(RUNES))
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        x = torch.relu(self.fc1(x.flatten(1)))
        x = torch.relu(self.fc2(self.drop(x)))
        return self.fc3(x)


def save(model, folder, epoch, accuracy):
    os.makedirs(folder, exist_ok=True)
    weights = model.state_dict()
    with open(os.path.join(folder, f"runes_{epoch:02d}.pt"), "wb") as f:
        torch.save({"runes": RUNES, "accuracy": accuracy, "weights": weights}, f)


def main():
    torch.manual_seed(122)
    rng = np.random.default_rng(122)
    pictures, runes = sketch(rng, 8680)
    train_x, train_y = pictures[:7680], runes[:7680]
    test_x, test_y = pictures[7680:], runes[7680:]
    net = RuneNet()
    optimizer = optim.Adam(net.parameters(), lr=5e-4)
    loss_fn = nn.CrossEntropyLoss()
    epochs, batch_size = 9, 256
    for epoch in range(epochs):
        t0 = time.time()
        net.train()
        for rows in torch.randperm(len(train_x)).split(batch_size):
            loss = loss_fn(net(train_x[rows]), train_y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            accuracy = (net(test_x).argmax(1) == test_y).float().mean().item()
        save(net, "data/models", epoch, accuracy)
        took = time.time() - t0
        print(f"{epoch}: loss {loss.item():.4f} acc {accuracy:.3f} {took:.2f} s", flush=True)


if __name__ == "__main__":
    main()
