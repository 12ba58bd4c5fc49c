# Plankton imaging: soft assignment of image descriptors to a codebook, species from the codes.
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

cfg = dict(
    seed=72, n=12000, dim=128, emb=64, codes=1800, species=24,
    batch=256, epochs=8, lr=1e-3, spread=0.05,
)  # fmt: skip


def load_descriptors(path="data/plankton.npz"):
    if not os.path.exists(path):
        os.makedirs("data", exist_ok=True)
        rng = np.random.default_rng(cfg["seed"])
        y = rng.integers(0, cfg["species"], cfg["n"])
        form = rng.integers(0, 5, cfg["n"])
        centres = rng.normal(0, 1, (cfg["species"], 5, cfg["dim"]))
        x = centres[y, form] + rng.normal(0, 1.2, (cfg["n"], cfg["dim"]))
        np.savez(path, x=x.astype(np.float32), y=y)
    f = np.load(path)
    return torch.from_numpy(f["x"]), torch.from_numpy(f["y"])


class CodebookNet(nn.Module):
    def __init__(self, dim, emb, codes, species):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, 256), nn.ReLU(), nn.Linear(256, emb))
        self.codes = nn.Parameter(torch.randn(codes, emb))
        self.temp = nn.Parameter(torch.tensor(8.0))
        self.out = nn.Linear(emb, species)

    def unit_codes(self):
        return F.normalize(self.codes, dim=1)

    def forward(self, x):
        c = self.unit_codes()
        z = F.normalize(self.enc(x), dim=1)
        a = F.softmax(self.temp * z @ c.t(), dim=1)
        return self.out(4 * a @ c), a

    def spread(self):
        """Mean squared cosine between codes; small when they fill the sphere evenly."""
        c = self.unit_codes()
        g = c.t() @ c
        return (g**2).sum() / len(c) ** 2


def run():
    torch.manual_seed(cfg["seed"])
    x, y = load_descriptors()
    xt, yt, xv, yv = x[2000:], y[2000:], x[:2000], y[:2000]
    net = CodebookNet(cfg["dim"], cfg["emb"], cfg["codes"], cfg["species"])
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"])
    for ep in range(cfg["epochs"]):
        t0 = time.time()
        net.train()
        for idx in torch.randperm(len(xt)).split(cfg["batch"]):
            logits, a = net(xt[idx])
            loss = F.cross_entropy(logits, yt[idx])
            usage = a.mean(0)
            loss = loss - 0.01 * -(usage * (usage + 1e-9).log()).sum()
            loss = loss + cfg["spread"] * net.spread()
            opt.zero_grad()
            loss.backward()
            opt.step()
        dt = time.time() - t0
        net.eval()
        with torch.no_grad():
            acc = (net(xv)[0].argmax(1) == yv).float().mean().item()
        print(f"ep {ep} loss {loss.item():.3f} acc {acc:.3f} {dt:.2f}s", flush=True)


run()
