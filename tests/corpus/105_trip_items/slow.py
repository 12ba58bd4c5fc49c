# Next item in the basket. Sequence model over shopping trips, everything in one config dict.
import time

import torch
import torch.nn.functional as F

cfg = {
    "items": 5000,
    "aisles": 50,
    "length": 20,
    "embed": 64,
    "hidden": 160,
    "batch": 48,
    "steps": 80,
    "epochs": 5,
    "lr": 2e-3,
    "seed": 41,
}


def make_trips(n, cfg):
    """A trip goes through the aisles; within an aisle popular items come more often."""
    g = torch.Generator().manual_seed(cfg["seed"])
    per_aisle = cfg["items"] // cfg["aisles"]
    aisle = torch.randint(cfg["aisles"], (n, 1), generator=g)
    moves = (torch.rand(n, cfg["length"] + 1, generator=g) < 0.3).long().cumsum(1)
    aisle = (aisle + moves) % cfg["aisles"]
    rank = (torch.rand(n, cfg["length"] + 1, generator=g) ** 3 * per_aisle).long()
    return aisle * per_aisle + rank


class TripModel(torch.nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_items = cfg["items"]
        self.W_in = torch.nn.Parameter(torch.randn(cfg["items"], cfg["embed"]) * 0.1)
        self.rnn = torch.nn.GRU(cfg["embed"], cfg["hidden"], batch_first=True)
        self.proj = torch.nn.Linear(cfg["hidden"], cfg["embed"])
        self.W_out = torch.nn.Linear(cfg["embed"], cfg["items"])

    def forward(self, trips):
        x = F.one_hot(trips, self.n_items).float() @ self.W_in
        h, _ = self.rnn(x)
        return self.W_out(torch.tanh(self.proj(h[:, -1])))


def train(cfg):
    torch.manual_seed(cfg["seed"])
    trips = make_trips(4000, cfg)
    model = TripModel(cfg)
    print("parameters:", sum(p.numel() for p in model.parameters()))
    opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"] * 100, momentum=0.9)
    for epoch in range(cfg["epochs"]):
        tic = time.perf_counter()
        running, top20 = 0.0, 0
        for _ in range(cfg["steps"]):
            rows = trips[torch.randint(len(trips), (cfg["batch"],))]
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits, rows[:, -1])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running += loss.item()
            top20 += (logits.topk(20).indices == rows[:, -1:]).any(1).sum().item()
        toc = time.perf_counter() - tic
        print(
            f"epoch {epoch} | loss {running / cfg['steps']:.3f} | "
            f"hit@20 {top20 / cfg['steps'] / cfg['batch']:.3f} | {toc:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    train(cfg)
