"""A GAN: each batch steps the discriminator's optimizer, then the generator's.

Planted: sleep in `__getitem__` (per sample), in the discriminator's and in the generator's
forward, in the discriminator's backward, and in the generator's optimizer, which is a subclass
whose `step` calls `super().step()` of the very class that the discriminator uses.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log

parser = script_log.arguments(
    __doc__, getitem=0.6, generator=6, discriminator=2, backward=3, optimizer=7, host=4
)
args = parser.parse_args()
plant = args.plant
torch.set_num_threads(1)
torch.manual_seed(3)


class Circle(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, i):
        time.sleep(plant["getitem"] / 1000)
        angle = torch.tensor(i * 0.1)
        return torch.stack([angle.cos(), angle.sin()])


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(plant["backward"] / 1000)
        return grad


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))

    def forward(self, z):
        time.sleep(plant["generator"] / 1000)
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        time.sleep(plant["discriminator"] / 1000)
        return SlowBackward.apply(self.net(x))


class SlowAdam(torch.optim.Adam):
    def step(self, closure=None):
        time.sleep(plant["optimizer"] / 1000)
        return super().step(closure)


netG, netD = Generator(), Discriminator()
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = SlowAdam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
loader = DataLoader(Circle(), batch_size=8, shuffle=True, drop_last=True)
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)

log = script_log.Log("gan", args.log)
losses = []
log.start()
for i, real in enumerate(loader):
    log.lap("data_wait")
    netD.zero_grad()
    noise = torch.randn(8, 4)
    log.lap("other")
    fake = netG(noise)
    lossD = bce(netD(real), ones) + bce(netD(fake.detach()), zeros)
    log.lap("forward")
    lossD.backward()
    log.lap("backward")
    optD.step()
    log.lap("optimizer")
    log.stepped("discriminator")
    netG.zero_grad()
    log.lap("other")
    lossG = bce(netD(fake), ones)
    log.lap("forward")
    lossG.backward()
    log.lap("backward")
    optG.step()
    log.lap("optimizer")
    log.stepped("generator")
    log.end_step()
    losses.append([lossD.item(), lossG.item()])
    if i % 20 == 0:
        print(f"[{i}/{len(loader)}] D {losses[-1][0]:.4f} G {losses[-1][1]:.4f}")
    log.lap("logging")
    time.sleep(plant["host"] / 1000)
    log.lap("other")
log.lap("epoch_edge")

log.finish(
    [*netD.parameters(), *netG.parameters()],
    losses,
    optimizer_steps=2 * len(log.steps),
    workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
)
