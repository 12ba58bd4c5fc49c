"""No loader, no optimizer, no module: bare tensors, `autograd.grad` and an update by hand.

Planted: sleep where a batch is cut, in the loss function, in backward, in the update and in host
code. Nothing but the backward engine's entry can be seen here from outside.
"""

import gc
import time

import torch

import script_log

args = script_log.arguments(__doc__, batch=8, forward=10, backward=8, update=6, host=4).parse_args()
plant = args.plant
torch.set_num_threads(1)
torch.manual_seed(22)


class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        time.sleep(plant["backward"] / 1000)
        return grad


X = torch.randn(1000, 5)
Y = X @ torch.tensor([1.0, -2.0, 3.0, 0.5, 0.0]) + 0.7
w = torch.zeros(5, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
log = script_log.Log("no_loader_no_optimizer", args.log)
losses = []
# A collection of all that torch has imported takes up to 0.3 s and falls anywhere into a step, also
# between the call of `grad` and the engine, where nobody outside sees the backward pass.
gc.collect()
gc.freeze()
log.start()
for step in range(160):
    i = (step * 8) % 1000
    x, y = X[i : i + 8], Y[i : i + 8]
    time.sleep(plant["batch"] / 1000)
    log.lap("data_wait")
    loss = (SlowBackward.apply(x @ w + b) - y).pow(2).mean()
    time.sleep(plant["forward"] / 1000)
    log.lap("forward")
    gw, gb = torch.autograd.grad(loss, [w, b])
    log.lap("backward")
    w.data -= 0.05 * gw
    b.data -= 0.05 * gb
    time.sleep(plant["update"] / 1000)
    log.lap("optimizer")
    log.end_step()
    losses.append(loss.item())
    if step % 40 == 0:
        print(f"{step:4d} {losses[-1]:.6f}")
    log.lap("logging")
    time.sleep(plant["host"] / 1000)
    log.lap("other")
log.finish([w, b], losses, optimizer_steps=0)
