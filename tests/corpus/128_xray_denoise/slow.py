"""Removes grain from small x-ray pictures of welds: a residual net with three scales."""

import copy
import os
import time
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 96


class Welds(Dataset):
    """Clean pictures; the grain is new each time a picture is taken."""

    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        y = torch.linspace(-1, 1, SIZE)[None, :, None]
        bend = 0.3 * torch.randn(count, 1, 1, generator=g)
        x = torch.linspace(-1, 1, SIZE)[None, None, :]
        seam = torch.exp(-(((y - bend * x) / 0.2) ** 2))
        pores = F.interpolate(torch.rand(count, 1, 24, 24, generator=g), SIZE, mode="bilinear")
        self.clean = (0.3 + 0.5 * seam[:, None] - 0.3 * (pores > 0.8).float())[:, :, :, :]

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        clean = self.clean[i]
        return clean + 0.15 * torch.randn_like(clean), clean


class Unit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return x + self.b(F.relu(self.a(x)))


class Denoiser(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        self.enter = nn.Conv2d(1, c, 3, padding=1)
        self.fine, self.fine2 = Unit(c), Unit(c)
        self.down1 = nn.Conv2d(c, 2 * c, 2, 2)
        self.middle, self.middle2 = Unit(2 * c), Unit(2 * c)
        self.down2 = nn.Conv2d(2 * c, 4 * c, 2, 2)
        self.coarse = nn.Sequential(Unit(4 * c), Unit(4 * c))
        self.up2 = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2)
        self.up1 = nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.leave = nn.Conv2d(c, 1, 3, padding=1)

    def forward(self, x):
        f = self.fine(self.enter(x))
        m = self.middle(self.down1(f))
        m = self.middle2(m + self.up2(self.coarse(self.down2(m))))
        return x + self.leave(self.fine2(f + self.up1(m)))


def psnr(a, b):
    return (-10 * torch.log10(F.mse_loss(a, b))).item()


def main():
    os.makedirs("data", exist_ok=True)
    torch.manual_seed(30)
    train = DataLoader(Welds(192, 30), batch_size=8, shuffle=True)
    noisy, clean = next(iter(DataLoader(Welds(32, 31), batch_size=32)))
    net = Denoiser()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 2e-3, epochs=3, steps_per_epoch=len(train)
    )
    recent, best, kept = deque(maxlen=20), 0.0, None
    for epoch in range(3):
        start = time.time()
        for step, (x, y) in enumerate(train):
            out = net(x)
            loss = F.l1_loss(out, y)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            recent.append(loss.item())
            print(
                f"{epoch}.{step:02d} l1 {sum(recent) / len(recent):.4f} "
                f"norm {norm.item():.2f} psnr {psnr(out.detach(), y):.2f}",
                flush=True,
            )
        with torch.no_grad():
            now = psnr(net(noisy), clean)
        if now > best:
            best, kept = now, copy.deepcopy(net.state_dict())
            torch.save(kept, "data/best.pt")
        print(f"epoch {epoch} db {now:.2f} best {best:.2f} {time.time() - start:.2f} s", flush=True)


if __name__ == "__main__":
    main()
