"""`python -m styles_pkg.train`: relative imports, a Trainer class of its own, two forked workers.

Start it in the folder that holds the package. Planted: sleep in `__getitem__` (per sample), in
forward, in the optimizer and in host code. With the defaults the loader is just slower.
"""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

import script_log

from .data import Shapes
from .model import Model, SlowNAdam


class Trainer:
    def __init__(self, args):
        plant = self.plant = args.plant
        self.model = Model(plant["forward"])
        SlowNAdam.ms = plant["optimizer"]
        self.optimizer = SlowNAdam(self.model.parameters(), lr=0.01)
        self.criterion = nn.CrossEntropyLoss()
        self.loader = DataLoader(
            Shapes(960, plant["getitem"]),
            batch_size=8,
            shuffle=True,
            num_workers=args.workers,
            multiprocessing_context="fork" if args.workers else None,
        )
        self.log = script_log.Log("module", args.log)
        self.losses = []

    def train_step(self, x, y):
        log = self.log
        self.optimizer.zero_grad()
        log.lap("other")
        loss = self.criterion(self.model(x), y)
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        self.optimizer.step()
        log.lap("optimizer")
        log.end_step()
        self.losses.append(loss.item())

    def fit(self):
        log = self.log
        log.start()
        batches = iter(self.loader)
        log.lap("epoch_edge")
        for x, y in batches:
            log.lap("data_wait")
            self.train_step(x, y)
            time.sleep(self.plant["host"] / 1000)
            log.lap("other")
            if len(self.losses) % 20 == 0:
                print(f"step {len(self.losses)} loss {self.losses[-1]:.4f}")
            log.lap("logging")
        log.lap("epoch_edge")


def main():
    parser = script_log.arguments(__doc__, getitem=6, forward=6, optimizer=5, host=3)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(14)
    trainer = Trainer(args)
    trainer.fit()
    trainer.log.finish(
        trainer.model.parameters(),
        trainer.losses,
        argv0=sys.argv[0],
        package=__package__,
        workers={"planted": "blocked", "per_batch_ns": args.plant["getitem"] * 8e6},
    )


if __name__ == "__main__":
    main()
