"""Steps of one process: how many, how long, and which of them are steady.

Totals come from the windows, which cover every tick once. Distributions come from the ticks kept
in detail; when a run outgrew that detail, from the windows' histograms, out of which the warm-up
(always in detail) is taken again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hotlap.account.cycles import Cycle, Step, find_cycles, ruling, steps_of
from hotlap.stats.histogram import bucket, merge
from hotlap.stats.histogram import quantile as histogram_quantile
from hotlap.stats.histogram import total as histogram_total
from hotlap.stats.quantiles import quantile
from hotlap.stats.warm_up import steady_start
from hotlap.values.phase import ACCOUNTS, STEP_PHASES
from hotlap.values.record import Process, Window

NOTHING: Final[tuple[int, ...]] = (0,) * len(ACCOUNTS)

SAME_READING: Final = 0.05
"""Histograms are trusted when the process counted as many steps as we do, within this share. It
reads the cycle while it runs, and may take a while to see a second optimizer."""


@dataclass(frozen=True)
class Steps:
    """All steps of one process, and the steady ones among them.

    ticks: ticks of the ruling kind in the whole run. accounts, steady_accounts: nanoseconds, one
    per name in ``ACCOUNTS``. cpu_ns, cpu_wall_ns: CPU time of the training thread, and the time
    over which it was taken; None where the system did not tell.
    p10_ns, median_ns, p90_ns: step time over steady steps.
    """

    rule: str
    count: int
    warm_up: int
    steady: int
    ticks: int
    accounts: tuple[int, ...]
    steady_accounts: tuple[int, ...]
    steady_batches: int
    cpu_ns: int | None
    cpu_wall_ns: int
    p10_ns: int | None
    median_ns: int | None
    p90_ns: int | None

    @property
    def steady_wall_ns(self) -> int:
        """Sum of all steady steps."""
        return sum(self.steady_accounts[: len(STEP_PHASES)])

    @property
    def wall_ns(self) -> int:
        """Sum of all steps, with what belongs to no closed cycle at the end."""
        return sum(self.accounts[: len(STEP_PHASES)])

    @property
    def mean_ns(self) -> float | None:
        """Mean time of a steady step; None when there is none."""
        return self.steady_wall_ns / self.steady if self.steady else None


def count_steps(process: Process) -> Steps:
    """Return the steps of a process; all zero when it made none."""
    detailed = steps_of(process)
    warm_up = steady_start([step.wall_ns for step in leading(process, detailed)])
    if is_detailed(process):
        return _from_ticks(process, detailed, warm_up)
    return _from_windows(process, detailed, warm_up)


def is_detailed(process: Process) -> bool:
    """Tell whether every tick of the process was kept in detail."""
    kept = len(process.ticks)
    unbroken = not process.ticks or process.ticks[-1].number == kept
    return unbroken and sum(window.ticks for window in process.windows) <= kept


def total_accounts(process: Process) -> tuple[int, ...]:
    """Return nanoseconds over all ticks of the process, one per name in ``ACCOUNTS``."""
    if is_detailed(process):
        return add(tick.accounts for tick in process.ticks)
    return add(window.accounts for window in process.windows)


def leading(process: Process, steps: Sequence[Step]) -> list[Step]:
    """Return the steps before the first gap in detail."""
    for at, tick in enumerate(process.ticks):
        if tick.number != at + 1:
            return [step for step in steps if step.last_tick <= at]
    return list(steps)


def add(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sum of accounts, name by name."""
    columns = tuple(zip(*parts, strict=True))
    return tuple(map(sum, columns)) if columns else NOTHING


def _from_ticks(process: Process, steps: Sequence[Step], warm_up: int) -> Steps:
    rule = ruling(process)
    steady = steps[warm_up:]
    times = [step.wall_ns for step in steady]
    timed = [step for step in steady if step.cpu_ns is not None]
    undisturbed = [step for step in timed if step.carved_ns == 0] or timed
    return Steps(
        rule=rule,
        count=len(steps),
        warm_up=warm_up,
        steady=len(steady),
        ticks=sum(1 for tick in process.ticks if tick.rule == rule),
        accounts=total_accounts(process),
        steady_accounts=add(step.accounts for step in steady),
        steady_batches=sum(step.batches for step in steady),
        cpu_ns=sum(step.cpu_ns or 0 for step in undisturbed) if undisturbed else None,
        cpu_wall_ns=sum(step.wall_ns + step.carved_ns for step in undisturbed),
        p10_ns=_whole(quantile(times, 0.1)),
        median_ns=_whole(quantile(times, 0.5)),
        p90_ns=_whole(quantile(times, 0.9)),
    )


def _from_windows(process: Process, detailed: Sequence[Step], warm_up: int) -> Steps:
    rule = ruling(process)
    cycles = find_cycles(process.ticks, rule)
    windows = process.windows
    count = sum(_steps_in(window, rule, cycles) for window in windows)
    early = detailed[:warm_up]
    accounts = total_accounts(process)
    cpu = [window.cpu_ns for window in windows if window.cpu_ns is not None]
    timed = [window for window in windows if window.cpu_ns is not None]
    low, middle, high = _distribution(process, detailed, warm_up, count)
    return Steps(
        rule=rule,
        count=count,
        warm_up=warm_up,
        steady=max(0, count - warm_up),
        ticks=sum(window.ticks for window in windows if window.rule == rule),
        accounts=accounts,
        steady_accounts=_take(accounts, add(step.accounts for step in early)),
        steady_batches=sum(w.batches for w in windows) - sum(step.batches for step in early),
        cpu_ns=sum(cpu) if cpu else None,
        cpu_wall_ns=sum(sum(window.accounts) for window in timed),
        p10_ns=low,
        median_ns=middle,
        p90_ns=high,
    )


def _steps_in(window: Window, rule: str, cycles: Sequence[Cycle]) -> int:
    """Return how many steps closed in a window, by the cycles that the detailed ticks show."""
    if window.rule != rule:
        return 0
    if rule != "optimizer":
        return window.ticks
    known = {optimizer for cycle in cycles for optimizer in cycle.optimizers}
    if not known & set(window.by_optimizer):
        return window.steps
    steps = 0
    for cycle in cycles:
        closing = cycle.optimizers if cycle.closer is None else {cycle.closer}
        steps += sum(window.by_optimizer.get(optimizer, 0) for optimizer in closing)
    return steps


def _distribution(
    process: Process, detailed: Sequence[Step], warm_up: int, count: int
) -> tuple[int | None, int | None, int | None]:
    """Return the 10th, 50th and 90th percentile of steady step times."""
    histogram = merge(window.histogram for window in process.windows)
    counted = histogram_total(histogram)
    if counted and abs(counted - count) <= SAME_READING * count:
        early = Counter(bucket(step.wall_ns) for step in detailed[:warm_up])
        steady = {at: max(0, number - early[at]) for at, number in histogram.items()}
        found = [histogram_quantile(steady, q) for q in (0.1, 0.5, 0.9)]
    else:
        times = [step.wall_ns for step in detailed[warm_up:]]
        found = [quantile(times, q) for q in (0.1, 0.5, 0.9)]
    return _whole(found[0]), _whole(found[1]), _whole(found[2])


def _take(accounts: tuple[int, ...], taken: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(0, one - other) for one, other in zip(accounts, taken, strict=True))


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
