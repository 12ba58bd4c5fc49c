"""Gradient accumulation: four micro batches for one optimizer step; the last cycle is short.

Planted: sleep in `__getitem__` (per sample), in forward and backward (per micro batch), in the
optimizer, and in host code after each micro batch. 122 micro batches make 31 steps, of which the
last has two. A learning-rate schedule steps with the optimizer.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log

ACCUMULATE = 4


class Sequences(Dataset):
    def __init__(self, count, ms):
        self.tokens = torch.randint(0, 50, (count, 13))
        self.ms = ms

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.tokens[i, :-1], self.tokens[i, 1:]


class SlowGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ms):
        ctx.ms = ms
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.ms / 1000)
        return grad, None


class Model(nn.Module):
    def __init__(self, plant):
        super().__init__()
        self.plant = plant
        self.embed = nn.Embedding(50, 32)
        self.rnn = nn.GRU(32, 32, batch_first=True)
        self.out = nn.Linear(32, 50)

    def forward(self, tokens, targets):
        hidden, _ = self.rnn(self.embed(tokens))
        time.sleep(self.plant["forward"] / 1000)
        hidden = SlowGradient.apply(hidden, self.plant["backward"])
        return nn.functional.cross_entropy(self.out(hidden).flatten(0, 1), targets.flatten())


class SlowAdamW(torch.optim.AdamW):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def main():
    parser = script_log.arguments(__doc__, getitem=1.5, forward=8, backward=6, optimizer=12, host=3)
    args = parser.parse_args()
    plant = args.plant
    torch.set_num_threads(1)
    torch.manual_seed(2)
    model = Model(plant)
    SlowAdamW.ms = plant["optimizer"]
    optimizer = SlowAdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    loader = DataLoader(Sequences(488, plant["getitem"]), batch_size=4, shuffle=True)

    log = script_log.Log("accumulation", args.log)
    losses = []
    batches = 0
    log.start()
    for i, (tokens, targets) in enumerate(loader):
        log.lap("data_wait")
        loss = model(tokens, targets) / ACCUMULATE
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        batches += 1
        losses.append(loss.item())
        if (i + 1) % ACCUMULATE == 0 or i + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            log.lap("other")
            optimizer.step()
            log.lap("optimizer")
            log.end_step(micro_batches=i % ACCUMULATE + 1)
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
            if len(log.steps) % 10 == 0:
                print(f"update {len(log.steps)}: loss {losses[-1] * ACCUMULATE:.4f}")
        log.lap("other")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")
    log.finish(
        model.parameters(),
        losses,
        batches=batches,
        expected_steps=31,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 4e6},
    )


if __name__ == "__main__":
    main()
