"""The data set of the package."""

import time

import torch
from torch.utils.data import Dataset


class Shapes(Dataset):
    def __init__(self, count, ms):
        self.count, self.ms = count, ms

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(self.ms / 1000)
        x = torch.full((10,), float(i % 5))
        return x, i % 5
