"""No training at all: a model in eval mode goes through a loader under inference_mode.

There is no step, and so nothing to measure; the command must still run as it would alone.
Planted: sleep in `__getitem__` (per sample) and in forward.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import script_log


class Points(Dataset):
    def __init__(self, ms):
        self.ms = ms

    def __len__(self):
        return 800

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        return torch.full((4,), i / 800)


class Net(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.net = nn.Linear(4, 2)

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.net(x)


def main():
    args = script_log.arguments(__doc__, getitem=0.5, forward=10).parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(25)
    model = Net(args.plant["forward"]).eval()
    loader = DataLoader(Points(args.plant["getitem"]), batch_size=4)
    log = script_log.Log("inference_only", args.log)
    sums = []
    with torch.inference_mode():
        for x in loader:
            sums.append(model(x).sum().item())
            if len(sums) % 50 == 0:
                print(f"{len(sums)}/{len(loader)}")
    log.finish(model.parameters(), sums, batches=len(sums))


if __name__ == "__main__":
    main()
