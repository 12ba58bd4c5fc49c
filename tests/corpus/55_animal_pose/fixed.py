"""Find the key points of an animal in frames of a video."""

import os
import time

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn
from torch.utils.data import DataLoader, Dataset

FRAME, CROP, POINTS = 180, 48, 4


class Video(Dataset):
    """Frames with a tracked animal; a crop around it is what the network sees."""

    def __init__(self, count, seed=58):
        rng = np.random.default_rng(seed)
        self.centres = rng.integers(CROP, FRAME - CROP, (count, 2))
        self.points = rng.integers(-16, 17, (count, POINTS, 2))
        self.background = rng.integers(0, 60, (FRAME, FRAME), dtype=np.uint8)
        y, x = np.ogrid[:FRAME, :FRAME]
        self.low = np.minimum(y, FRAME - y) ** 2 + np.minimum(x, FRAME - x) ** 2 < 60**2
        self.grid = np.mgrid[:CROP, :CROP] - CROP // 2

    def __len__(self):
        return len(self.centres)

    def frame(self, i):
        frame = self.background.copy()
        for k, (dy, dx) in enumerate(self.points[i]):
            y, x = self.centres[i] + (dy, dx)
            frame[y - 2 : y + 3, x - 2 : x + 3] = 140 + 35 * k
        return frame

    def __getitem__(self, i):
        frame = self.frame(i)
        y, x = self.centres[i] - CROP // 2
        crop = frame[y : y + CROP, x : x + CROP].astype(np.float32)
        crop[1:-1] = (crop[:-2] + 2 * crop[1:-1] + crop[2:]) / 4
        crop = (crop - crop.mean()) / crop.std()
        heat = [
            np.exp(-((self.grid[0] - dy) ** 2 + (self.grid[1] - dx) ** 2) / 12)
            for dy, dx in self.points[i]
        ]
        return torch.tensor(crop, dtype=torch.float32)[None], torch.tensor(np.stack(heat)).float()


class Board:
    """One picture with all curves, for the screen in the lab."""

    def __init__(self, path, size=(640, 400)):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.path, self.size, self.values = path, size, []

    def curves(self, values):
        self.values.append(values)
        if len(self.values) % 100 == 0:
            self.redraw()

    def redraw(self):
        canvas = Image.new("RGB", self.size, "white")
        draw = ImageDraw.Draw(canvas)
        table = np.array(self.values)
        span = np.ptp(table, axis=0) + 1e-9
        heights = (self.size[1] - 20) * (1 - (table - table.min(0)) / span) + 10
        across = np.linspace(10, self.size[0] - 10, len(table))
        for i, curve in enumerate(heights.T):
            colour = tuple(int(c) for c in (37 * i % 200, 91 * i % 200, 151 * i % 200))
            draw.line(list(zip(across.tolist(), curve.tolist(), strict=True)), fill=colour)
        canvas.save(self.path)


def network(width=24):
    return nn.Sequential(
        nn.Conv2d(1, width, 5, padding=2),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=2, dilation=2),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=4, dilation=4),
        nn.ReLU(),
        nn.Conv2d(width, POINTS, 1),
    )


def main():
    torch.manual_seed(58)
    loader = DataLoader(Video(1200), batch_size=12, shuffle=True)
    model, board = network(), Board("out/curves.png")
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(3):
        start = time.time()
        for crop, heat in loader:
            guess = model(crop)
            per_point = ((guess - heat) ** 2).mean((0, 2, 3))
            loss = per_point.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            board.curves([loss.item(), guess.max().item(), *per_point.tolist()])
        print(f"epoch {epoch} loss {loss.item():.5f} {time.time() - start:.2f} s", flush=True)


if __name__ == "__main__":
    main()
