"""A loop that talks too much: each step prints flushed lines, logs to a file and draws a bar.

Nothing sleeps in the logging: it is the true cost of `lines` prints with flush, as many records of
`logging` into a file, a CSV row that is flushed, and a bar on stdout, all booked as `logging`.
Planted besides: sleep in `__getitem__` (per sample), in forward and in host code.
"""

import csv
import logging
import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log


class Points(Dataset):
    def __init__(self, ms):
        self.x = torch.randn(640, 8)
        self.ms = ms

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return self.x[i], self.x[i, :1]


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.net = nn.Sequential(nn.Linear(8, 200), nn.ReLU(), nn.Linear(200, 1))

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.net(x)


def main():
    parser = script_log.arguments(__doc__, getitem=0.4, forward=5, host=2)
    parser.add_argument("--lines", type=int, default=60)
    args = parser.parse_args()
    plant = args.plant
    folder = script_log.folder(args.out)
    logging.basicConfig(filename=os.path.join(folder, "train.log"), level=logging.DEBUG)
    table_file = open(os.path.join(folder, "metrics.csv"), "w", newline="")
    table = csv.writer(table_file)
    torch.set_num_threads(1)
    torch.manual_seed(26)
    model = Net(plant["forward"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(Points(plant["getitem"]), batch_size=8, shuffle=True)
    log = script_log.Log("chatty", args.log)
    losses = []
    log.start()
    for epoch in range(2):
        for x, y in loader:
            log.lap("data_wait")
            optimizer.zero_grad()
            log.lap("other")
            out = model(x)
            log.lap("forward")
            loss = nn.functional.mse_loss(out, y)
            log.lap("other")
            loss.backward()
            log.lap("backward")
            optimizer.step()
            log.lap("optimizer")
            log.end_step()
            losses.append(loss.item())
            grads = model.net[0].weight.grad
            for k in range(args.lines):
                print(f"epoch {epoch} unit {k} grad {grads[k].norm().item():.6f}", flush=True)
                logging.debug("weight %d is %s", k, model.net[0].weight[k, 0].item())
            table.writerow([len(losses), losses[-1]])
            table_file.flush()
            sys.stdout.write("\r" + "#" * (len(losses) % 40))
            sys.stdout.flush()
            log.lap("logging")
            time.sleep(plant["host"] / 1000)
            log.lap("other")
        log.lap("epoch_edge")
    table_file.close()
    log.finish(
        model.parameters(),
        losses,
        lines=args.lines,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
