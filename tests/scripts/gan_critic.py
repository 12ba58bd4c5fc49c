"""WGAN: five critic steps, each on a batch of its own, for one step of the generator.

The slower cycle is the step: 5 batches, 5 critic steps, 1 generator step. `optimizer_ends` has the
instant of each `optimizer.step()`. Planted: sleep in `__getitem__` (per sample), in both forwards,
in the critic's optimizer and in host code after the generator's step.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log

CRITIC = 5


class Moons(Dataset):
    def __init__(self, ms):
        self.ms = ms
        angle = torch.linspace(0, 3.14, 1200)
        self.points = torch.stack([angle.cos(), angle.sin()], 1)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.points[i]


class Net(nn.Module):
    def __init__(self, inputs, outputs, ms):
        super().__init__()
        self.ms = ms
        self.layers = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, outputs))

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.layers(x)


class SlowRMSprop(torch.optim.RMSprop):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def endless(loader, log):
    while True:
        yield from loader
        log.lap("epoch_edge")


def main():
    args = script_log.arguments(
        __doc__, getitem=0.5, critic=2, generator=4, optimizer=3, host=9
    ).parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(4)
    generator = Net(4, 2, plant["generator"])
    critic = Net(2, 1, plant["critic"])
    SlowRMSprop.ms = plant["optimizer"]
    opt_c = SlowRMSprop(critic.parameters(), lr=5e-4)
    opt_g = torch.optim.Adam(generator.parameters(), lr=5e-4)
    loader = DataLoader(Moons(plant["getitem"]), batch_size=8, shuffle=True)
    log = script_log.Log("gan_critic", args.log)
    losses = []
    log.start()
    batches = endless(loader, log)
    for step in range(30):
        for _ in range(CRITIC):
            real = next(batches)
            log.lap("data_wait")
            opt_c.zero_grad()
            z = torch.randn(len(real), 4)
            log.lap("other")
            with torch.no_grad():
                fake = generator(z)
            loss_c = critic(fake).mean() - critic(real).mean()
            log.lap("forward")
            loss_c.backward()
            log.lap("backward")
            opt_c.step()
            log.lap("optimizer")
            log.stepped("critic")
            with torch.no_grad():
                for p in critic.parameters():
                    p.clamp_(-0.1, 0.1)
            log.lap("other")
        opt_g.zero_grad()
        log.lap("other")
        loss_g = -critic(generator(torch.randn(8, 4))).mean()
        log.lap("forward")
        loss_g.backward()
        log.lap("backward")
        opt_g.step()
        log.lap("optimizer")
        log.stepped("generator")
        log.end_step()
        losses.append([loss_c.item(), loss_g.item()])
        print(f"generator step {step} critic {losses[-1][0]:.4f} gen {losses[-1][1]:.4f}")
        log.lap("logging")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.finish(
        [*critic.parameters(), *generator.parameters()],
        losses,
        optimizer_steps=30 * (CRITIC + 1),
        batches=30 * CRITIC,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
