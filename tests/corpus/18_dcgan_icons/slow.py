"""Generate 16x16 icons with a DCGAN."""

import time

import torch
from torch import nn

torch.manual_seed(123)
torch.autograd.set_detect_anomaly(True)
LATENT, BATCH, STEPS = 32, 16, 550


def icons(count):
    """Crosses, discs and frames in one colour channel, scaled to [-1, 1]."""
    grid = torch.arange(16) - 7.5
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    out = []
    for i in range(count):
        size = 3 + 3 * torch.rand(1)
        if i % 3 == 0:
            shape = (x.abs() < size / 3) | (y.abs() < size / 3)
        elif i % 3 == 1:
            shape = x**2 + y**2 < size**2
        else:
            edge = torch.maximum(x.abs(), y.abs())
            shape = (edge < size + 1) & (edge > size - 1)
        out.append(shape.float() * 2 - 1)
    return torch.stack(out)[:, None]


class ResUp(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.up = nn.ConvTranspose2d(cin, cout, 4, 2, 1)
        self.bn1, self.bn2 = nn.BatchNorm2d(cout), nn.BatchNorm2d(cout)
        self.conv = nn.Conv2d(cout, cout, 3, 1, 1)

    def forward(self, x):
        x = torch.relu(self.bn1(self.up(x)))
        return x + torch.relu(self.bn2(self.conv(x)))


class Generator(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.start = nn.Linear(LATENT, width * 4)
        self.blocks = nn.Sequential(
            ResUp(width, width), ResUp(width, width), ResUp(width, width // 2)
        )
        self.end = nn.Conv2d(width // 2, 1, 3, 1, 1)

    def forward(self, z):
        x = self.start(z).view(len(z), -1, 2, 2)
        return torch.tanh(self.end(self.blocks(x)))


class Discriminator(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        layers, last = [], 1
        for i in range(3):
            layers += [nn.Conv2d(last, width * (i + 1), 3, 2, 1), nn.LeakyReLU(0.2)]
            layers += [nn.GroupNorm(4, width * (i + 1)), nn.Dropout2d(0.1)]
            last = width * (i + 1)
        self.body = nn.Sequential(*layers, nn.Flatten(), nn.Linear(last * 4, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


real_images = icons(1500)
G, D = Generator(), Discriminator()
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(BATCH), torch.zeros(BATCH)
t0 = time.time()

for step in range(1, STEPS + 1):
    real = real_images[torch.randint(len(real_images), (BATCH,))]
    fake = G(torch.randn(BATCH, LATENT))

    # discriminator
    opt_d.zero_grad()
    loss_d = bce(D(real), ones * 0.9) + bce(D(fake.detach()), zeros)
    loss_d.backward()
    opt_d.step()

    # generator
    opt_g.zero_grad()
    loss_g = bce(D(fake), ones)
    loss_g.backward()
    opt_g.step()

    if step % 50 == 0:
        d, g, rate = loss_d.item(), loss_g.item(), step / (time.time() - t0)
        print(f"[{step}/{STEPS}] D {d:.3f} G {g:.3f} {rate:.1f} it/s", flush=True)

torch.save(G.state_dict(), "generator.pt")
