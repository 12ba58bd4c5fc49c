"""Denoising autoencoder; writes reconstructions next to the weights."""

import os
import time

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn, optim

OUT = "out/autoencoder"
os.makedirs(OUT, exist_ok=True)
torch.manual_seed(5)


def faces(count, side=40):
    """Ellipses with eyes and a mouth, all a little different."""
    rng = np.random.default_rng(5)
    pictures = []
    for _ in range(count):
        tone = int(rng.integers(120, 230))
        dx, dy = int(rng.integers(-4, 4)), int(rng.integers(-3, 3))
        im = Image.new("L", (side, side), int(rng.integers(0, 60)))
        d = ImageDraw.Draw(im)
        d.ellipse([8 + dx, 4 + dy, 32 + dx, 37 + dy], fill=tone)
        d.ellipse([13 + dx, 14 + dy, 17 + dx, 18 + dy], fill=20)
        d.ellipse([23 + dx, 14 + dy, 27 + dx, 18 + dy], fill=20)
        d.arc([14 + dx, 20 + dy, 26 + dx, 31 + dy], 20, 160, fill=40, width=2)
        pictures.append(np.asarray(im, dtype=np.float32) / 255)
    return torch.tensor(np.stack(pictures))[:, None]


class AutoEncoder(nn.Module):
    def __init__(self, code=64):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 24, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(24, 48, 4, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(48 * 100, code),
        )
        self.expand = nn.Linear(code, 48 * 100)
        self.decoder = nn.Sequential(
            nn.ReLU(),
            nn.ConvTranspose2d(48, 24, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(24, 1, 4, 2, 1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        h = self.expand(self.encoder(x))
        return self.decoder(h.view(-1, 48, 10, 10))


@torch.no_grad()
def save_previews(model, clean, noisy, step, scale=3):
    rebuilt = model(noisy)
    rows = [clean, noisy.clamp(0, 1), rebuilt]
    side = clean.shape[-1] * scale
    sheet = Image.new("L", (side * len(clean), side * len(rows)))
    for r, row in enumerate(rows):
        for c, picture in enumerate(row):
            tile = Image.fromarray((picture[0].numpy() * 255).astype(np.uint8))
            sheet.paste(tile.resize((side, side), Image.LANCZOS), (c * side, r * side))
    previews = os.path.join(OUT, f"step_{step % 20:06d}.png")
    sheet.save(previews)


data = faces(3000)
model = AutoEncoder()
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
batch, epochs, step = 50, 3, 0
start = time.time()
for epoch in range(epochs):
    for chunk in torch.randperm(len(data)).split(batch):
        clean = data[chunk]
        noisy = clean + 0.3 * torch.randn_like(clean)
        loss = criterion(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        save_previews(model, clean[:8], noisy[:8], step)
    print("epoch", epoch + 1, "loss", round(loss.item(), 4), "after", int(time.time() - start), "s")

torch.save(model.state_dict(), os.path.join(OUT, "weights.pt"))
