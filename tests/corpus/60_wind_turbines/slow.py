"""Power of wind turbines from weather; evaluates and saves every hundred steps."""

import argparse
import os
import time

import torch
from torch import nn

INPUTS, TURBINES = 80, 24


def weather(count, seed=64):
    generator = torch.Generator().manual_seed(seed)
    wind = torch.randn(count, INPUTS, generator=generator)
    mixing = torch.randn(INPUTS, TURBINES, generator=generator) / INPUTS**0.5
    power = torch.sigmoid(2 * wind @ mixing) ** 3
    return wind, power + 0.02 * torch.randn(count, TURBINES, generator=generator)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lift, self.drop = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.drop(torch.relu(self.lift(x)))


class Forecaster(nn.Module):
    def __init__(self, width=640, depth=3):
        super().__init__()
        self.enter = nn.Linear(INPUTS, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.leave = nn.Linear(width, TURBINES)

    def forward(self, x):
        return self.leave(self.blocks(self.enter(x)))


def evaluate(model, wind, power):
    model.eval()
    with torch.inference_mode():
        error = (model(wind) - power).abs().mean().item()
    model.train()
    return error


def save(model, optimizer, step, folder):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "checkpoint.pt")
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=384)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--out", default="runs/turbines")
    args = parser.parse_args()

    torch.manual_seed(64)
    wind, power = weather(30_000)
    valid_wind, valid_power = wind[:512], power[:512]
    model = Forecaster()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        pick = torch.randint(512, len(wind), (args.batch,))
        loss = nn.functional.mse_loss(model(wind[pick]), power[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.every == 0:
            error = evaluate(model, valid_wind, valid_power)
            save(model, optimizer, step, args.out)
            rate = step / (time.perf_counter() - start)
            print(f"step {step} error {error:.4f} {rate:.1f} steps/s", flush=True)


if __name__ == "__main__":
    main()
