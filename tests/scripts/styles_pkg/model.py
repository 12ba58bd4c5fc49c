"""The model and the optimizer of the package."""

import time

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
        self.layers = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))

    def forward(self, x):
        time.sleep(self.ms / 1000)
        return self.layers(x)


class SlowNAdam(torch.optim.NAdam):
    ms = 0.0

    def step(self, closure=None):
        time.sleep(self.ms / 1000)
        return super().step(closure)
