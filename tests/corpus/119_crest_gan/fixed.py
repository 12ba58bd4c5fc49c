"""A GAN that draws round family crests, 32 x 32 pixels."""

import os
import time

import torch
import torch.nn as nn

# settings
SEED = 9
Z = 64
BATCH = 24
ITERS = 150
EVERY = 15
LR = 2e-4
SIDE = 32

torch.manual_seed(SEED)
os.makedirs("data", exist_ok=True)


def crests(n):
    """Petals around a disc; number, length and turn differ."""
    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    r, angle = (x**2 + y**2).sqrt()[None], torch.atan2(y, x)[None]
    petals = torch.randint(3, 9, (n, 1, 1)).float()
    turn = 6.28 * torch.rand(n, 1, 1)
    edge = 0.55 + 0.25 * torch.rand(n, 1, 1) * torch.cos(petals * angle + turn)
    body = torch.sigmoid(25 * (edge - r)) - torch.sigmoid(30 * (0.18 - r))
    return (2 * body - 1)[:, None]


class Up(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.net = nn.Sequential(
            nn.Upsample(scale_factor=2),
            nn.Conv2d(i, o, 3, padding=1),
            nn.BatchNorm2d(o),
            nn.ReLU(),
            nn.Conv2d(o, o, 3, padding=1),
            nn.BatchNorm2d(o),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.net(x)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(Z, 128 * 4 * 4)
        self.ups = nn.Sequential(Up(128, 96), Up(96, 64), Up(64, 48))
        self.last = nn.Conv2d(48, 1, 3, padding=1)

    def forward(self, z):
        x = self.start(z).view(-1, 128, 4, 4)
        return torch.tanh(self.last(self.ups(x)))


netG = Generator()
netD = nn.Sequential(
    nn.Conv2d(1, 24, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(24, 48, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(48, 64, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Flatten(),
    nn.Linear(64 * 4 * 4, 1),
)
optG = torch.optim.Adam(netG.parameters(), lr=LR, betas=(0.5, 0.999))
optD = torch.optim.Adam(netD.parameters(), lr=LR, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
images = crests(2000)
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

t0 = time.time()
for it in range(1, ITERS + 1):
    real = images[torch.randint(len(images), (BATCH,))]
    fake = netG(torch.randn(BATCH, Z))

    # discriminator
    optD.zero_grad()
    lossD = bce(netD(real), ones) + bce(netD(fake.detach()), zeros)
    lossD.backward()
    optD.step()

    # generator
    optG.zero_grad()
    lossG = bce(netD(fake), ones)
    lossG.backward()
    optG.step()

    if it % EVERY == 0:
        print(
            f"[{it}/{ITERS}] Loss_D: {lossD.item():.4f} Loss_G: {lossG.item():.4f} "
            f"({time.time() - t0:.2f} s)",
            flush=True,
        )
        t0 = time.time()

torch.save(netG.state_dict(), "data/netG.pt")
