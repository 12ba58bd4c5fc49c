"""Which ticks make one step.

A tick is one event that may end a step; a step is one cycle of the optimizers.

**Rule.** When several kinds of ticks occur in one process the strongest one rules:
``explicit`` (the user said so), ``optimizer``, ``loader``, ``backward``. Ticks of a weaker rule
end nothing: what they measured is added to the next tick of the ruling kind.

**Trainings.** Optimizers whose active stretches (first to last tick) overlap belong together;
those that follow each other (k-fold, a sweep in one process) are consecutive trainings.

**Cycle.** With one optimizer every tick is a step. With several, the step closes at the optimizer
that steps least often (n critic steps, then one generator step), and among equals at the one that
comes last before the first-seen optimizer steps again. When the optimizer that steps least often
opens the cycle (one step of it, then several of the others), a step closes before it steps again.
Two exceptions keep figures meaningful:

* an optimizer that steps less than once in ``LONGEST_CYCLE`` ticks (once per epoch, say) takes no
  part in the cycle; its ticks are added to the step that follows;
* optimizers that take turns in long stretches (an epoch each) make no cycle: every tick is a step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hotlap.values.phase import STEP_PHASES
from hotlap.values.record import Process, Tick

RULES: Final[tuple[str, ...]] = ("explicit", "optimizer", "loader", "backward")
"""What may end a step, strongest first."""

LONGEST_CYCLE: Final = 100
"""Ticks in one cycle at most: WGAN's published script takes 100 critic steps in its warm-up."""


@dataclass(frozen=True)
class Step:
    """One cycle: the sums of its ticks. ``last_tick`` is the number of the tick that closed it."""

    last_tick: int
    ticks: int
    accounts: tuple[int, ...]
    batches: int
    cpu_ns: int | None
    epoch_first: bool

    @property
    def wall_ns(self) -> int:
        """Time of the step: its step phases, without the run phases carved out of it."""
        return sum(self.accounts[: len(STEP_PHASES)])

    @property
    def carved_ns(self) -> int:
        """Time of run phases (evaluation, checkpoint, …) that fell between its ticks."""
        return sum(self.accounts[len(STEP_PHASES) :])


@dataclass(frozen=True)
class Cycle:
    """How the steps of one training close.

    optimizers: ordinals that take part; empty under rules other than ``optimizer``.
    closer: the ordinal whose tick closes a step; None when every tick does.
    opens: the ``closer`` opens the cycle, so that a step closes just before its tick.
    """

    optimizers: frozenset[int]
    closer: int | None = None
    opens: bool = False


_EVERY_TICK: Final = Cycle(frozenset())


def ruling(process: Process) -> str:
    """Return the strongest rule among the ticks and windows of the process.

    ``optimizer`` when there are neither.
    """
    seen = {tick.rule for tick in process.ticks} | {window.rule for window in process.windows}
    return next((rule for rule in RULES if rule in seen), "optimizer")


def steps_of(process: Process) -> list[Step]:
    """Return the steps that the detailed ticks of the process make, oldest first.

    A cycle that is still open where detail ends or breaks off is left out.
    """
    rule = ruling(process)
    cycles = find_cycles(process.ticks, rule)
    steps: list[Step] = []
    for stretch in _contiguous(process.ticks):
        whole = stretch[0].number == 1 or not any(cycle.closer is not None for cycle in cycles)
        found = _close(stretch, rule, cycles)
        steps.extend(found if whole else found[1:])
    return steps


def find_cycles(ticks: Sequence[Tick], rule: str) -> list[Cycle]:
    """Return the cycles of the consecutive trainings that the ticks show, oldest first."""
    if rule != "optimizer":
        return [_EVERY_TICK]
    order = [tick.optimizer for tick in ticks if tick.rule == rule]
    groups = _trainings(order)
    home = {optimizer: at for at, group in enumerate(groups) for optimizer in group}
    # One pass: a script may make a new optimizer for every step, and so thousands of groups.
    own: list[list[int]] = [[] for _ in groups]
    for optimizer in order:
        own[home[optimizer]].append(optimizer)
    return [_cycle(part, group) for part, group in zip(own, groups, strict=True)]


def _trainings(order: Sequence[int]) -> list[frozenset[int]]:
    """Group optimizers whose stretches from first to last tick overlap."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, optimizer in enumerate(order):
        first.setdefault(optimizer, at)
        last[optimizer] = at
    groups: list[tuple[set[int], int]] = []
    for optimizer in sorted(first, key=first.__getitem__):
        if groups and first[optimizer] < groups[-1][1]:
            members, end = groups.pop()
            groups.append((members | {optimizer}, max(end, last[optimizer])))
        else:
            groups.append(({optimizer}, last[optimizer]))
    return [frozenset(members) for members, _ in groups]


def _cycle(order: Sequence[int], group: frozenset[int]) -> Cycle:
    """Find what closes the steps of one training, given the order in which optimizers stepped."""
    counts = Counter(order)
    members = frozenset(at for at in group if counts[at] * LONGEST_CYCLE >= len(order))
    order = [at for at in order if at in members]
    if len(members) < 2:
        return Cycle(members)
    fewest = min(counts[at] for at in members)
    rarest = [at for at in members if counts[at] == fewest]
    seen = _until_first_returns(order)
    closer = max(rarest, key=lambda at: max((i for i, o in enumerate(seen) if o == at), default=-1))
    if _takes_turns(order, closer):
        return Cycle(members)
    return Cycle(members, closer, opens=closer == order[0])


def _until_first_returns(order: Sequence[int]) -> Sequence[int]:
    """Return the beginning of the order, up to where the first optimizer steps again."""
    others = next(at for at, optimizer in enumerate(order) if optimizer != order[0])
    again = (at for at in range(others, len(order)) if order[at] == order[0])
    return order[: next(again, len(order))]


def _takes_turns(order: Sequence[int], closer: int) -> bool:
    """Tell whether the closing optimizer mostly follows itself: stretches, not cycles."""
    own = [at for at, optimizer in enumerate(order) if optimizer == closer]
    following = sum(1 for at in own if at > 0 and order[at - 1] == closer)
    return following * 2 > len(own)


def _contiguous(ticks: Sequence[Tick]) -> Iterable[list[Tick]]:
    """Split the ticks where numbers are missing between them."""
    stretch: list[Tick] = []
    for tick in ticks:
        if stretch and tick.number != stretch[-1].number + 1:
            yield stretch
            stretch = []
        stretch.append(tick)
    if stretch:
        yield stretch


def _close(ticks: Sequence[Tick], rule: str, cycles: Sequence[Cycle]) -> list[Step]:
    """Sum the ticks of one contiguous stretch into steps."""
    home = {optimizer: cycle for cycle in cycles for optimizer in cycle.optimizers}
    steps: list[Step] = []
    pending: list[Tick] = []
    current: Cycle | None = None
    for tick in ticks:
        cycle = _cycle_of(tick, rule, home)
        opened = current is not None and current.opens
        if cycle is not None and opened and (cycle is not current or _at_closer(cycle, tick)):
            steps.append(_sum(pending, rule))
            pending = []
        current = cycle or current
        pending.append(tick)
        if (
            cycle is not None
            and not cycle.opens
            and (cycle.closer is None or _at_closer(cycle, tick))
        ):
            steps.append(_sum(pending, rule))
            pending = []
    if pending and current is not None and current.opens and steps:
        last = _sum(pending, rule)
        if last.ticks == steps[-1].ticks:
            steps.append(last)
    return steps


def _at_closer(cycle: Cycle, tick: Tick) -> bool:
    return tick.optimizer == cycle.closer


def _cycle_of(tick: Tick, rule: str, home: dict[int, Cycle]) -> Cycle | None:
    """Return the cycle that a tick takes part in; None of a tick that ends nothing."""
    if tick.rule != rule:
        return None
    return home.get(tick.optimizer) if rule == "optimizer" else _EVERY_TICK


def _sum(ticks: Sequence[Tick], rule: str) -> Step:
    cpu = [tick.cpu_ns for tick in ticks if tick.cpu_ns is not None]
    return Step(
        last_tick=ticks[-1].number,
        ticks=sum(1 for tick in ticks if tick.rule == rule),
        accounts=tuple(map(sum, zip(*(tick.accounts for tick in ticks), strict=True))),
        batches=sum(tick.batches for tick in ticks),
        cpu_ns=sum(cpu) if len(cpu) == len(ticks) else None,
        epoch_first=any(tick.epoch_first for tick in ticks),
    )
