"""The input of a training, seen as one pipeline: what its waits are made of, what caps a gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotlap.diagnose.build import state_of
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import Region, select
from hotlap.diagnose.shares import run_share, step_share, training_loader, training_rate
from hotlap.diagnose.step_lines import framework_lines
from hotlap.stats.knee import knee
from hotlap.values.facts import Facts, Measured, WorkerPoint
from hotlap.values.finding import Bounds
from hotlap.values.summary import LoaderSummary

NO_WAIT = "no wait for batches was seen: no DataLoader feeds the training, or it made no step"
"""Why rules about the input cannot tell."""
_BETWEEN_STEPS = ("epoch_edge", "evaluation", "other")
_COLLATERAL = 1.5
"""More than half of the wait again is not believed: a replay is of a few batches."""
_WAITING = 0.2
"""Share of a sample's time from which on it is said to wait."""
_FASTER = 1.5
"""A loader that is so many times faster alone than in the training is not what bounds it."""


@dataclass(frozen=True)
class Input:
    """What is known about waiting for data.

    wait: share of the run spent waiting for batches. region: lines that prepare samples.
    collate: lines that put batches together. sampler: lines of the training process itself
    (indices, unpacking) while it waits and has workers. split: shares of a batch's preparation.
    """

    wait: float
    region: Region | None
    collate: Region | None
    sampler: Region | None
    loader: LoaderSummary | None
    hidden: str | None = None
    """Why preparing samples is not what the training waits for, in words; None if it may be."""

    @property
    def workers(self) -> int:
        """Return the number of workers of the training loader; 0 where there is no loader."""
        return self.loader.workers if self.loader else 0

    def split(self, name: str) -> float | None:
        """Return the share of a batch's preparation: blocked, cpu, runqueue, collate or ipc."""
        part = self.loader.split.get(name) if self.loader else None
        return part.share if part is not None else None

    @property
    def state(self) -> str:
        """Return what preparing samples mostly is: working, blocked, runqueue or unknown.

        By sampled stacks where there are some, else by the kernel's split of whole batches.
        """
        if self.region is not None:
            return state_of(self.region)
        shares = {
            "working": self.split("cpu"),
            "blocked": self.split("blocked"),
            "runqueue": self.split("runqueue"),
        }
        known = {name: share for name, share in shares.items() if share is not None}
        return max(known, key=lambda name: known[name]) if known else "unknown"


def input_of(facts: Facts) -> Input | None:
    """Return what is known about waiting for data; None where no step was seen."""
    wait = step_share(facts, "data_wait")
    if wait is None:
        return None
    costs = costs_of(facts)
    loader = training_loader(facts)
    workers = loader.workers if loader else 0

    def preparing(one: Cost) -> bool:
        return one.phase == "data_wait" and (one.role == "worker" or not workers)

    return Input(
        wait=wait,
        region=select(costs, lambda one: preparing(one) and not in_collate(one)),
        collate=select(costs, lambda one: preparing(one) and in_collate(one)),
        sampler=select(
            costs, lambda one: one.phase == "data_wait" and one.role == "trainer" and bool(workers)
        ),
        loader=loader,
        hidden=_hidden(facts, workers),
    )


def _hidden(facts: Facts, workers: int) -> str | None:
    """Tell whether workers prepare faster than the training asks: then it waits for their start.

    Without workers loading takes turns with the model, and is never hidden.
    """
    rate = training_rate(facts)
    if not workers or rate is None or not isinstance(facts.loader_per_s, Measured):
        return None
    if facts.loader_per_s.value < _FASTER * rate:
        return None
    return (
        f"the loader alone delivers {facts.loader_per_s.value:,.0f} samples/s, the training takes "
        f"{rate:,.0f}: what it waits for is not the preparing of samples"
    )


def relief(facts: Facts, data: Input, share: float, least: float = 0.7) -> Bounds:
    """Return bounds of what is gained when a cause in preparing samples is gone.

    share: of the run (0-1), by the lines of the cause. least: part of it that goes away at least.

    Without workers loading costs more than the wait: it takes turns with the model on one core and
    leaves it cold caches, so that steps on batches that are there are faster (the ceiling G). What
    the wait takes then goes with as much again as G shows, and never more than that in all.
    """
    whole = min(share, data.wait)
    steps, rate = run_share(facts, "steps"), training_rate(facts)
    most = whole
    alone = not data.workers and data.wait > 0.0
    if alone and steps and rate and isinstance(facts.compute_per_s, Measured):
        ceiling = steps * (1.0 - rate / facts.compute_per_s.value)
        most = whole * min(_COLLATERAL, max(1.0, ceiling / data.wait))
    return Bounds(whole * least, min(0.99, most))


def remaking(facts: Facts, costs: Sequence[Cost]) -> list[Cost]:
    """Return the costs of making the training's loader again, after the first step.

    Empty where a framework makes it: all of the training is then below the line that calls it.
    """
    loader = training_loader(facts)
    made = loader.place if loader is not None else None
    if made is None or f"{made.file}:{made.line}" in framework_lines(costs):
        return []
    return [
        one
        for one in costs
        if one.role == "trainer"
        and one.phase in _BETWEEN_STEPS
        and any((at.file, at.line) == (made.file, made.line) for at in one.stack)
    ]


def reads_from_storage(facts: Facts) -> bool | None:
    """Tell whether samples wait for storage, by the same ones from storage and from memory.

    None where that was not compared, or the samples hardly wait, or wait in both.
    """
    if not isinstance(facts.storage, Measured):
        return None
    seen = facts.storage.value
    if seen.cold_blocked_ns < _WAITING * seen.cold_ns:
        return None
    rest = seen.warm_blocked_ns / seen.cold_blocked_ns
    return True if rest <= 0.5 else False if rest >= 0.8 else None


def in_collate(cost: Cost) -> bool:
    """Tell whether a line runs inside the collate function."""
    if cost.part == "collate":
        return True
    names = [cost.place.function, *(one.function for one in cost.callers)]
    if any("collate" in name.rsplit(".", 1)[-1].lower() for name in names):
        return True
    leaves = sum(ns for leaf, ns in cost.leaves if _collates(leaf))
    return leaves >= 0.5 * sum(ns for _, ns in cost.leaves) > 0


def _collates(leaf: str) -> bool:
    """Tell whether a full name is of torch's collate functions, or of a method of a collator."""
    owner = leaf.rsplit(".", 2)[-2:-1]
    return "_utils.collate" in leaf or any("collat" in name.lower() for name in owner)


def best_point(facts: Facts) -> WorkerPoint | None:
    """Return the knee of the worker curve: the fewest workers within 5 % of the best rate."""
    best = knee([(point.workers, point.per_s) for point in facts.curve])
    return next((point for point in facts.curve if point.workers == best), None)


def point_at(facts: Facts, workers: int) -> WorkerPoint | None:
    """Return the point of the worker curve at so many workers."""
    return next((point for point in facts.curve if point.workers == workers), None)


def epoch_edge_share(facts: Facts) -> float:
    """Return the share of the run between the epochs; 0 where none was seen."""
    return run_share(facts, "epoch_edge") or 0.0
