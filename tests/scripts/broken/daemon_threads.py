"""Daemon threads compute with torch, then spin in Python until the interpreter goes away.

They run forwards of a model of their own, which are not the training's. Before the end the script
makes sure that no thread is inside torch: in versions of Python before 3.14 a daemon thread that
comes back from C++ while the interpreter shuts down can abort the process, with any torch.
"""

import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import script_log

args = script_log.arguments(__doc__).parse_args()
torch.set_num_threads(1)
torch.manual_seed(31)
x = torch.randn(160, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
log = script_log.Log("daemon_threads", args.log)
losses = []


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    log.lap("other")
    log.end_step()
    losses.append(loss.item())


side = nn.Linear(4, 4)
rounds = [0, 0]


over = threading.Event()
spinning = threading.Barrier(3)


def compute(index):
    while not over.is_set():
        with torch.no_grad():
            side(torch.ones(2, 4))
        rounds[index] += 1
        time.sleep(0.002)
    spinning.wait()
    while True:
        rounds[index] += 0
        time.sleep(0.001)


for index in range(2):
    threading.Thread(target=compute, args=(index,), daemon=True).start()
threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
for _ in range(3):
    for x, y in loader:
        train_step(x, y)
        time.sleep(0.01)
over.set()
spinning.wait()
print(f"loss {losses[-1]:.4f}")
log.finish(model.parameters(), losses, side_forwards=sum(rounds))
