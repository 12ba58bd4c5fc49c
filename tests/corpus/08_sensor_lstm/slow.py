"""Forecast the next value of vibration sensors.

Each record is long, so it is fed chunk by chunk and the state of the LSTM is
carried over. Gradients are summed over a record, then one update is made.
"""

import logging
import time

import numpy as np
import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("sensors")


def load_records(count, length, channels, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(length)[:, None]
    records = []
    for _ in range(count):
        freq = rng.uniform(0.01, 0.2, channels)
        phase = rng.uniform(0, 6.28, channels)
        signal = np.sin(t * freq + phase) + 0.1 * rng.normal(size=(length, channels))
        records.append(torch.tensor(signal, dtype=torch.float32))
    return records


class Forecaster(nn.Module):
    def __init__(self, channels, hidden=64):
        super().__init__()
        self.lstm = nn.LSTM(channels, hidden, batch_first=True)
        self.out = nn.Linear(hidden, channels)

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(h), state


CHANNELS, CHUNK, BATCH = 8, 16, 8
torch.manual_seed(0)
records = load_records(64, 16 * CHUNK + 1, CHANNELS)
net = Forecaster(CHANNELS)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
huber = nn.SmoothL1Loss()

for epoch in range(9):
    order = np.random.default_rng(epoch).permutation(len(records))
    started, total, updates = time.time(), 0.0, 0
    for first in range(0, len(order), BATCH):
        batch = torch.stack([records[i] for i in order[first : first + BATCH]])
        state = None
        opt.zero_grad()
        for begin in range(0, batch.shape[1] - 1, CHUNK):
            x = batch[:, begin : begin + CHUNK]
            y = batch[:, begin + 1 : begin + CHUNK + 1]
            prediction, state = net(x, state)
            loss = huber(prediction, y) / (batch.shape[1] // CHUNK)
            loss.backward(retain_graph=True)
            total += loss.item()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        updates += 1
    per_record = (time.time() - started) / updates
    log.info("epoch %d loss %.4f", epoch, total / updates)
    print(f"{per_record:.3f} s/record", flush=True)
