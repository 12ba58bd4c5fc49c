"""Changes directory, reads its arguments, starts a Pool and subprocesses of its own, then trains.

A `multiprocessing.Pool` prepares the data, a child `python -c` computes the mean and another one
fails with exit code 4, as the script expects; then a training with two forked workers follows.
`--log` may be relative to the start directory. Planted: sleep in preparation (`prepare`, per
task), in `__getitem__` (per sample), in forward, in the optimizer and in host code.
"""

import json
import logging
import multiprocessing
import os
import subprocess
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log

logger = logging.getLogger("train")


def prepare(task):
    index, folder, ms = task
    time.sleep(ms / 1000)
    torch.set_num_threads(1)
    values = torch.randn(60, 8, generator=torch.Generator().manual_seed(index)).tolist()
    with open(os.path.join(folder, f"part{index}.json"), "w") as file:
        json.dump(values, file)
    return len(values)


class Parts(Dataset):
    def __init__(self, ms):
        self.rows = []
        self.ms = ms
        for name in sorted(os.listdir("data")):
            with open(os.path.join("data", name)) as file:
                self.rows += json.load(file)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        row = torch.tensor(self.rows[i])
        return row[:-1], row[-1:]


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.net = nn.Sequential(nn.Linear(7, 32), nn.ELU(), nn.Linear(32, 1))

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.net(x)


class SlowAdagrad(torch.optim.Adagrad):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)


def make_data(ms):
    os.makedirs("data")
    with multiprocessing.Pool(2) as pool:
        made = pool.map(prepare, [(i, "data", ms) for i in range(16)])
    code = "import json,sys; r=json.load(open(sys.argv[1])); print(sum(map(sum,r))/len(r))"
    mean = subprocess.run(
        [sys.executable, "-c", code, "data/part0.json"], capture_output=True, text=True, check=True
    )
    failed = subprocess.run([sys.executable, "-c", "raise SystemExit(4)"]).returncode
    return {"rows": sum(made), "mean": float(mean.stdout), "stderr": mean.stderr, "failed": failed}


def main():
    parser = script_log.arguments(__doc__, prepare=20, getitem=4, forward=6, optimizer=4, host=3)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()
    args.log = args.log and os.path.abspath(args.log)
    plant = args.plant
    os.chdir(script_log.folder(args.out))
    logging.basicConfig(filename="train.log", level=logging.INFO)
    torch.set_num_threads(1)
    torch.manual_seed(15)
    children = make_data(plant["prepare"])
    SlowAdagrad.ms = plant["optimizer"]
    model = Net(plant["forward"])
    optimizer = SlowAdagrad(model.parameters(), lr=args.lr)
    loader = DataLoader(
        Parts(plant["getitem"]),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        multiprocessing_context="fork",
    )
    log = script_log.Log("chdir_mp", args.log)
    losses = []
    log.start()
    batches = iter(loader)
    log.lap("epoch_edge")
    for x, y in batches:
        log.lap("data_wait")
        optimizer.zero_grad()
        log.lap("other")
        loss = nn.functional.smooth_l1_loss(model(x), y)
        log.lap("forward")
        loss.backward()
        log.lap("backward")
        optimizer.step()
        log.lap("optimizer")
        log.end_step()
        losses.append(loss.item())
        logger.info("step %d loss %.5f", len(losses), losses[-1])
        log.lap("logging")
        time.sleep(plant["host"] / 1000)
        log.lap("other")
    log.lap("epoch_edge")
    print(f"{len(losses)} steps, loss {losses[-1]:.5f}, in {os.path.basename(os.getcwd())}")
    log.finish(
        model.parameters(),
        losses,
        children=children,
        workers={"planted": "blocked", "per_batch_ns": plant["getitem"] * 8e6},
    )
    os.chdir("/")


if __name__ == "__main__":
    main()
