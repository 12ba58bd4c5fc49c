"""One optimizer per parameter, each stepping as soon as its gradient is accumulated.

The step has no line of its own: it ends with the backward pass. Planted: sleep in `__getitem__`
(per sample), in forward, and in host code.
"""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log


class Points(Dataset):
    def __init__(self, ms):
        generator = torch.Generator().manual_seed(11)
        self.points = torch.randn(480, 8, generator=generator)
        self.ms = ms

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        time.sleep(self.ms / 1000)
        return self.points[index], self.points[index].sum()


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)), nn.Linear(8, 1))
        self.ms = ms

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.layers(x).squeeze(1)


def main():
    args = script_log.arguments(__doc__, getitem=0.5, forward=4, host=2).parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    model = Net(args.plant["forward"])
    optimizers = {p: torch.optim.SGD([p], lr=0.01) for p in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    loader = DataLoader(Points(args.plant["getitem"]), batch_size=8, shuffle=True)
    log = script_log.Log("optimizer_in_backward", args.log)
    losses = []
    log.start()
    for _ in range(2):
        batches = iter(loader)
        log.lap("epoch_edge")
        for points, sums in batches:
            log.lap("data_wait")
            output = model(points)
            log.lap("forward")
            loss = (output - sums).pow(2).mean()
            log.lap("other")
            loss.backward()
            log.lap("backward")
            log.end_step()
            losses.append(loss.item())
            time.sleep(args.plant["host"] / 1000)
            log.lap("other")
        log.lap("epoch_edge")
    per_batch = args.plant["getitem"] * 8 * 1e6
    workers = {"planted": "blocked", "per_batch_ns": per_batch}
    log.finish(model.parameters(), losses, workers=workers, expected_steps=len(losses))


if __name__ == "__main__":
    main()
