"""Load on a bridge from strain gauges; second-order optimizer, loop with accelerate."""

import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Kronecker(torch.optim.Optimizer):
    """Preconditions each matrix from both sides by roots of its gradient statistics."""

    def __init__(self, params, lr=0.05, momentum=0.9, decay=0.95, damping=1e-4, interval=25):
        defaults = dict(
            lr=lr, momentum=momentum, decay=decay, damping=damping, interval=interval
        )
        super().__init__(params, defaults)

    @staticmethod
    def root(statistic, damping, power=-0.25):
        values, vectors = torch.linalg.eigh(statistic)
        floor = damping * values[-1].clamp(min=1e-12)
        return (vectors * (values.clamp(min=0) + floor).pow(power)) @ vectors.T

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, g = self.state[p], p.grad
                if not state:
                    state["step"] = 0
                    state["velocity"] = torch.zeros_like(p)
                    state["sides"] = [torch.zeros(n, n) for n in p.shape] if p.ndim == 2 else []
                    state["roots"] = [None] * len(state["sides"])
                if p.ndim == 2:
                    left, right = state["sides"]
                    left.lerp_(g @ g.T, 1 - group["decay"])
                    right.lerp_(g.T @ g, 1 - group["decay"])
                    if state["step"] % group["interval"] == 0:
                        state["roots"] = [self.root(s, group["damping"]) for s in state["sides"]]
                    left_root, right_root = state["roots"]
                    moved = left_root @ g @ right_root
                    g = moved * (g.norm() / moved.norm().clamp(min=1e-12))
                state["step"] += 1
                state["velocity"].mul_(group["momentum"]).add_(g)
                p.sub_(state["velocity"], alpha=group["lr"])


def gauges(count, seed, inputs=60, outputs=6):
    shared = torch.Generator().manual_seed(77)
    mixing = torch.randn(outputs, inputs, generator=shared)
    generator = torch.Generator().manual_seed(seed)
    load = torch.rand(count, outputs, generator=generator)
    strain = torch.tanh(load @ mixing) + 0.05 * torch.randn(count, inputs, generator=generator)
    return TensorDataset(strain, load)


def network(inputs=60, width=208, outputs=6):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.Tanh(),
        nn.Linear(width, width),
        nn.Tanh(),
        nn.Linear(width, width),
        nn.Tanh(),
        nn.Linear(width, outputs),
    )


def main():
    set_seed(77)
    accelerator = Accelerator(cpu=True)
    model = network()
    optimizer = Kronecker(model.parameters())
    loader = DataLoader(gauges(6400, 0), batch_size=128, shuffle=True)
    valid = gauges(500, 1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(8):
        start = time.time()
        for strain, load in loader:
            loss = nn.functional.mse_loss(model(strain), load)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        seconds = time.time() - start
        with torch.no_grad():
            strain, load = valid.tensors
            error = (model(strain) - load).abs().mean()
        accelerator.print(f"epoch {epoch} error {error:.4f} {seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
