"""BERT4Rec style model of shopping baskets: hide some of the products and guess them."""

import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

config = dict(
    products=9000,
    length=50,
    dim=96,
    layers=2,
    heads=4,
    hide=0.15,
    batch=16,
    baskets=560,
    epochs=5,
    lr=1e-3,
)
PAD, MASK = 0, 1


def shop(n, cfg, seed):
    """Every customer likes a few aisles; an aisle holds 60 products."""
    rng = np.random.default_rng(seed)
    aisles = (cfg["products"] - 2) // 60
    out = np.zeros((n, cfg["length"]), dtype=np.int64)
    for row in out:
        liked = rng.integers(0, aisles, 3)
        size = rng.integers(cfg["length"] // 2, cfg["length"] + 1)
        within = np.minimum(rng.geometric(0.1, size) - 1, 59)
        row[:size] = 2 + liked[rng.integers(0, 3, size)] * 60 + within
    return torch.from_numpy(out)


def hide(baskets, p, generator):
    labels = baskets.clone()
    chosen = torch.rand(baskets.shape, generator=generator) < p
    chosen &= baskets != PAD
    labels[~chosen] = -100
    inputs = baskets.masked_fill(chosen, MASK)
    return inputs, labels


class BasketBert(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg["products"], cfg["dim"], padding_idx=PAD)
        self.places = nn.Embedding(cfg["length"], cfg["dim"])
        layer = nn.TransformerEncoderLayer(
            cfg["dim"],
            cfg["heads"],
            4 * cfg["dim"],
            dropout=0.1,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, cfg["layers"], enable_nested_tensor=False)
        self.transform = nn.Sequential(
            nn.Linear(cfg["dim"], cfg["dim"]), nn.GELU(), nn.LayerNorm(cfg["dim"])
        )
        self.decoder = nn.Linear(cfg["dim"], cfg["products"])

    def forward(self, inputs, labels):
        x = self.tokens(inputs) + self.places.weight[: inputs.shape[1]]
        hidden = self.encoder(x, src_key_padding_mask=inputs == PAD)
        chosen = labels != -100
        logits = self.decoder(self.transform(hidden[chosen]))
        loss = F.cross_entropy(logits, labels[chosen])
        return loss


def main(cfg):
    torch.manual_seed(23)
    g = torch.Generator().manual_seed(23)
    baskets = shop(cfg["baskets"], cfg, 23)
    model = BasketBert(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"], fused=True)
    steps = len(baskets) // cfg["batch"]
    for epoch in range(cfg["epochs"]):
        clock, mean = time.time(), 0.0
        order = torch.randperm(len(baskets), generator=g)[: steps * cfg["batch"]]
        for i, rows in enumerate(order.view(steps, -1)):
            inputs, labels = hide(baskets[rows], cfg["hide"], g)
            loss = model(inputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean += loss.item() / steps
        print(f"epoch {epoch} | mlm loss {mean:.4f} | {time.time() - clock:.2f} s", flush=True)


if __name__ == "__main__":
    main(config)
