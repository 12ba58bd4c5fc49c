"""A training on a GPU that times itself by its own CUDA events and writes a log of it.

The events are read once at the end, after one synchronisation outside of the steps. With
``--device cpu`` it trains without them, to try the script itself where there is no GPU.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

WARM_UP = 25


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--copy", choices=("none", "pinned", "pageable", "beside"), default="none")
    parser.add_argument("--reads", type=int, default=0)
    parser.add_argument("--strict", action="store_true", help="any synchronisation is an error")
    parser.add_argument("--capture", action="store_true", help="capture a graph halfway")
    parser.add_argument("--workers", type=int, default=0, help="fork loader workers, CUDA in use")
    parser.add_argument("--log", type=Path, required=True)
    return parser.parse_args()


class Marks:
    """The script's own events: begin and end of each phase of each step."""

    def __init__(self, on: bool) -> None:
        self.on = on
        self.steps: list[list[Any]] = []

    def step(self) -> None:
        self.steps.append([])

    def set(self) -> None:
        if self.on:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.steps[-1].append(event)

    def mean_ns(self) -> dict[str, float]:
        """Return the mean time of each phase after warm-up; synchronises."""
        if not self.on:
            return {}
        torch.cuda.synchronize()
        sums = [0.0, 0.0, 0.0]
        steps = self.steps[WARM_UP:]
        for marks in steps:
            pairs = list(pairwise(marks))[::2]
            sums = [s + a.elapsed_time(b) for s, (a, b) in zip(sums, pairs, strict=True)]
        names = ("forward", "backward", "optimizer")
        return {name: one * 1e6 / len(steps) for name, one in zip(names, sums, strict=True)}


class Batches:
    """The batches of one way of copying; ``host`` lies in pinned memory where it says so."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.device, self.how = torch.device(args.device), args.copy
        host = torch.randn(args.size, args.size)
        on_gpu = self.device.type == "cuda"
        self.host = host.pin_memory() if self.how in ("pinned", "beside") and on_gpu else host
        self.there = host.to(self.device)
        self.stream = torch.cuda.Stream() if self.how == "beside" and on_gpu else None

    def next(self) -> Any:
        if self.how == "none":
            return self.there
        if self.stream is None:
            return self.host.to(self.device, non_blocking=self.how == "pinned")
        with torch.cuda.stream(self.stream):
            batch = self.host.to(self.device, non_blocking=True)
        torch.cuda.current_stream().wait_stream(self.stream)
        batch.record_stream(torch.cuda.current_stream())
        return batch


def capture(model: Any, batch: Any) -> None:
    """Capture a forward pass in a graph and play it: no call of anyone may come in between."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside), torch.no_grad():
        model(batch)
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        model(batch)
    graph.replay()


def drain(workers: int) -> None:
    """Fetch from workers that were forked while CUDA was in use."""
    data = torch.utils.data.TensorDataset(torch.arange(64.0))
    for _ in torch.utils.data.DataLoader(data, batch_size=8, num_workers=workers):
        pass


def train(args: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(0)
    on_gpu = torch.device(args.device).type == "cuda"
    layers = [torch.nn.Linear(args.size, args.size) for _ in range(args.layers)]
    model = torch.nn.Sequential(*layers).to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = Batches(args)
    if args.workers:
        drain(args.workers)
    marks = Marks(on_gpu)
    losses = []
    strict = args.strict and on_gpu
    begun = time.perf_counter()
    for number in range(args.steps):
        if strict and number == 1:
            torch.cuda.set_sync_debug_mode("error")
        marks.step()
        batch = batches.next()
        marks.set()
        output = model(batch)
        marks.set()
        loss = output.square().mean()
        marks.set()
        loss.backward()
        marks.set()
        marks.set()
        optimizer.step()
        marks.set()
        optimizer.zero_grad()
        for _ in range(args.reads):
            losses.append(loss.item())
        if args.capture and on_gpu and number == args.steps // 2:
            capture(model, batch)
    if strict:
        torch.cuda.set_sync_debug_mode("default")
    seconds = time.perf_counter() - begun
    weights = b"".join(one.detach().cpu().numpy().tobytes() for one in model.parameters())
    return {
        "phases": marks.mean_ns(),
        "seconds": seconds,
        "weights": hashlib.sha256(weights).hexdigest(),
        "batch_bytes": args.size * args.size * 4,
        "losses": len(losses),
    }


def main() -> None:
    args = arguments()
    torch.use_deterministic_algorithms(True)
    args.log.write_text(json.dumps(train(args)))


if __name__ == "__main__":
    main()
