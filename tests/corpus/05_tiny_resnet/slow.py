"""ResNet on a CIFAR-like data set with resumable training."""

import argparse
import os
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_bn(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout))


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.a = conv_bn(cin, cout, stride)
        self.b = conv_bn(cout, cout)
        self.skip = None
        if stride != 1 or cin != cout:
            self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        y = self.b(F.relu(self.a(x)))
        return F.relu(y + (x if self.skip is None else self.skip(x)))


class ResNet(nn.Module):
    def __init__(self, widths=(8, 16, 64), classes=10):
        super().__init__()
        self.stem = conv_bn(3, widths[0])
        blocks, last = [], widths[0]
        for w in widths:
            blocks += [Residual(last, w, 2), Residual(w, w, 1)]
            last = w
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Sequential(nn.Linear(last * 16, 2048), nn.ReLU(), nn.Linear(2048, classes))

    def forward(self, x):
        x = self.blocks(F.relu(self.stem(x)))
        return self.fc(x.flatten(1))


def load_arrays(path="data/images.npz"):
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        rng = np.random.default_rng(3)
        y = rng.integers(0, 10, 3200)
        means = rng.integers(60, 200, (10, 3, 32, 32))
        x = np.clip(means[y] + rng.normal(0, 40, (3200, 3, 32, 32)), 0, 255).astype(np.uint8)
        np.savez(path, x=x, y=y)
    f = np.load(path)
    return torch.from_numpy(f["x"]), torch.from_numpy(f["y"])


def save_checkpoint(model, optimizer, epoch, step, folder):
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": epoch,
        "step": step,
    }
    tmp = os.path.join(folder, "last.pt.tmp")
    torch.save(state, tmp)
    os.replace(tmp, os.path.join(folder, "last.pt"))


def run(args):
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    x, y = load_arrays()
    model = ResNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    step = 0
    for epoch in range(args.epochs):
        order = torch.randperm(len(y))
        started = time.time()
        for i in range(0, len(y) - args.batch + 1, args.batch):
            pick = order[i : i + args.batch]
            inputs = x[pick].float().div_(255).sub_(0.5)
            flip = torch.rand(len(pick)) < 0.5
            inputs[flip] = inputs[flip].flip(3)
            loss = F.cross_entropy(model(inputs), y[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % args.save_every == 0:
                save_checkpoint(model, optimizer, epoch, step, args.out)
        took = time.time() - started
        sys.stdout.write(f"[{epoch}] loss {loss.item():.4f}  {took:.1f}s\n")
        sys.stdout.flush()
    save_checkpoint(model, optimizer, args.epochs, step, args.out)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--save-every", type=int, default=1)
    p.add_argument("--out", default="runs/resnet")
    p.add_argument("--seed", type=int, default=0)
    run(p.parse_args())
