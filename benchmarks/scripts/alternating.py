"""One process trains in blocks, with hotlap's hooks in or out, and clocks each block.

First the width of the model is sought that makes a step of about ``--target-us`` of CPU time.
Each block is an epoch with its own iterator (and workers). Pairs of blocks come as in-out or
out-in; two pairs that follow each other have opposite orders, and chance says which is first.
Prints one JSON object: a list of blocks, each with its steps' times.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import random
import resource
from itertools import pairwise
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

import parts
import torch
from torch import nn

SKIPPED = 20
"""Steps at the start of a block that are not counted: caches, workers that start. Half as many
in short blocks, whose steps are long."""
PHASES = ("batch", "zero_grad", "forward", "loss", "backward", "optimizer", "item")
WIDTHS = (8, 2048)
CHANNELS = (2, 256)


def _middle(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]


def _children_ns() -> int:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1e9)


class Training:
    """A model in training, block by block."""

    def __init__(self, args: argparse.Namespace, width: int) -> None:
        self.args = args
        self.model = parts.make_model(args.model, width)
        self.optimizer = parts.make_optimizer(self.model, args.model)
        self.criterion = nn.CrossEntropyLoss()
        self.skipped = skipped(args)
        self.loader = parts.make_loader(args.batch, args.workers, args.steps + self.skipped)
        self.total = 0.0

    def block(self) -> dict[str, float]:
        """Train one epoch; return wall and CPU time per step, in nanoseconds."""
        model, optimizer, criterion = self.model, self.optimizer, self.criterion
        walls: list[int] = []
        cpus: list[int] = []
        children = _children_ns()
        for points, classes in self.loader:
            optimizer.zero_grad()
            loss = criterion(model(points), classes)
            loss.backward()
            optimizer.step()
            self.total += loss.item()
            walls.append(perf_counter_ns())
            cpus.append(thread_time_ns())
        steps = [
            b - a for a, b in zip(walls[self.skipped :], walls[self.skipped + 1 :], strict=False)
        ]
        spent = [
            b - a for a, b in zip(cpus[self.skipped :], cpus[self.skipped + 1 :], strict=False)
        ]
        return {
            "wall_mean_ns": sum(steps) / len(steps),
            "wall_median_ns": _middle(steps),
            "cpu_mean_ns": sum(spent) / len(spent),
            "cpu_median_ns": _middle(spent),
            "workers_cpu_ns": (_children_ns() - children) / len(walls),
        }

    def block_by_phase(self) -> dict[str, float]:
        """Train one epoch; return the CPU time of each part of a median step, in nanoseconds.

        The clock is read between the parts, hooks in or out; that is what the parts include.
        """
        model, optimizer, criterion = self.model, self.optimizer, self.criterion
        rows: list[tuple[int, ...]] = []
        before = thread_time_ns()
        for points, classes in self.loader:
            marks = [before, thread_time_ns()]
            optimizer.zero_grad()
            marks.append(thread_time_ns())
            scores = model(points)
            marks.append(thread_time_ns())
            loss = criterion(scores, classes)
            marks.append(thread_time_ns())
            loss.backward()
            marks.append(thread_time_ns())
            optimizer.step()
            marks.append(thread_time_ns())
            self.total += loss.item()
            marks.append(thread_time_ns())
            rows.append(tuple(b - a for a, b in pairwise(marks)))
            before = thread_time_ns()
        counted = rows[self.skipped :]
        return {name: _middle([row[n] for row in counted]) for n, name in enumerate(PHASES)}


def skipped(args: argparse.Namespace) -> int:
    """Return how many steps at the start of a block are not counted."""
    return min(SKIPPED, int(args.steps) // 2)


def calibrate(args: argparse.Namespace) -> int:
    """Return the width whose step comes nearest to the target CPU time."""
    low, high = WIDTHS if args.model == "perceptron" else CHANNELS
    brief = argparse.Namespace(**vars(args))
    brief.steps = min(40, args.steps)
    reached = {low: _step_ns(brief, low), high: math.inf}
    if reached[low] >= args.target_us * 1000:
        return low
    while high / low > 1.06 and high - low > 1:
        middle = round((low * high) ** 0.5)
        reached[middle] = _step_ns(brief, middle)
        if reached[middle] < args.target_us * 1000:
            low = middle
        else:
            high = middle
    return min((low, high), key=lambda width: abs(reached[width] - args.target_us * 1000))


def _step_ns(args: argparse.Namespace, width: int) -> float:
    training = Training(args, width)
    return min(training.block()["cpu_median_ns"] for _ in range(3))


def orders(pairs: int, chance: random.Random) -> list[bool]:
    """Return for each block whether the hooks are in, balanced in order."""
    found: list[bool] = []
    for _ in range((pairs + 1) // 2):
        first = chance.random() < 0.5
        found += [first, not first, not first, first]
    return found[: 2 * pairs]


def main() -> None:
    """Calibrate, then alternate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target-us", type=float, help="CPU time of a step to aim at")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the order of blocks")
    parser.add_argument("--run", type=Path, required=True, help="folder for the record")
    parser.add_argument("--phases", action="store_true", help="clock the parts of each step")
    parser.add_argument("--pure", action="store_true", help="hooks in Python only")
    args = parts.arguments(parser)
    width = calibrate(args) if args.target_us else args.width
    training = Training(args, width)
    block = training.block_by_phase if args.phases else training.block
    block()

    # Not before: what is calibrated knows nothing of hotlap.
    from hotlap.fast import switch

    switch.off = args.pure
    from hotlap.inject.session import Session

    session = Session(args.run, os.getcwd())
    session.begin()
    block()
    timeline = session.recorder.timeline
    blocks: list[dict[str, Any]] = []
    for hooked in orders(args.pairs, random.Random(args.seed)):
        session.patches.undo()
        if hooked:
            session.imported("torch")
        gc.collect()
        before = timeline.ticks
        blocks.append({"hooked": hooked, **block()})
        ticks = timeline.ticks - before
        if ticks != (args.steps + training.skipped if hooked else 0):
            raise SystemExit(f"hooks {'in' if hooked else 'out'}, but {ticks} ticks were counted")
    session.end()
    lost = session.recorder.recording.lost
    print(json.dumps({"width": width, "torch": torch.__version__, "lost": lost, "blocks": blocks}))


main()
