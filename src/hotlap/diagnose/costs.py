"""Where the wall time of the run went, by the user's line: the profile on one scale.

The training thread is the critical path: what it spends at a line, the run spends. A loader's
worker is not on it: its lines cost the run only what the training thread waited for batches, so
that wait is divided among the workers' lines by their own time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hotlap.values.facts import Facts, Measured
from hotlap.values.record import Place
from hotlap.values.shares import OUTSIDE_STEPS, Base, base_of
from hotlap.values.trial import ProfileEntry

__all__ = ("OUTSIDE_STEPS", "WORKER_PHASES", "Base", "Cost", "base_of", "costs_of")

WORKER_PHASES = ("fetch", "collate")


@dataclass(frozen=True)
class Cost:
    """Wall time of the run at one line of the user's, in one phase.

    share: of the base. own_ns: the thread's own time there (a worker's may exceed what it cost).
    working, blocked, runqueue: shares of ``own_ns``; None where the kernel does not tell.
    expressions, leaves: what ran there, by own time, greatest first.
    """

    phase: str
    place: Place
    share: float
    ns: float
    own_ns: int
    samples: int
    role: str
    part: str
    working: float | None
    blocked: float | None
    runqueue: float | None
    expressions: tuple[tuple[str, float], ...]
    leaves: tuple[tuple[str, float], ...]
    callers: tuple[Place, ...]
    over_time: tuple[int, ...]

    @property
    def key(self) -> str:
        """Return ``file:line``."""
        return f"{self.place.file}:{self.place.line}"

    @property
    def stack(self) -> tuple[Place, ...]:
        """Return the user's frames, from the line outwards."""
        return (self.place, *self.callers)

    @property
    def expression(self) -> str | None:
        """Return the source text that took most of it, if it is known."""
        return self.expressions[0][0] if self.expressions else None

    def spent_in(self, *modules: str) -> float:
        """Return the part (0-1) of its time in functions whose full name begins with one of these.

        0 where no innermost function is known.
        """
        whole = sum(ns for _, ns in self.leaves)
        return (
            sum(ns for leaf, ns in self.leaves if leaf.startswith(modules)) / whole
            if whole
            else 0.0
        )

    @property
    def state(self) -> str:
        """Return what the thread mostly did: working, blocked, runqueue or unknown."""
        parts = {"working": self.working, "blocked": self.blocked, "runqueue": self.runqueue}
        known = {name: share for name, share in parts.items() if share is not None}
        return max(known, key=lambda name: known[name]) if known else "unknown"


def costs_of(facts: Facts) -> tuple[Cost, ...]:
    """Return the cost of every line that the profile names, greatest first."""
    base = base_of(facts)
    if base is None or not isinstance(facts.profile, Measured):
        return ()
    entries = [one for one in facts.profile.value if base.whole or one.phase not in OUTSIDE_STEPS]
    trainer = [one for one in entries if one.role == "trainer"]
    workers = [
        one
        for one in facts.profile.value
        if one.role == "worker" and one.phase in WORKER_PHASES and one.place is not None
    ]
    waited = _waited_for_workers(trainer, workers)
    found = _grouped(trainer, base, lambda one: float(one.ns - waited.get(id(one), 0)))
    busy = sum(one.ns for one in workers)
    if busy and waited:
        scale = sum(waited.values()) / busy
        found += _grouped(workers, base, lambda one: one.ns * scale)
    return tuple(sorted((one for one in found if one.ns > 0), key=lambda one: -one.ns))


def _waited_for_workers(
    trainer: Iterable[ProfileEntry], workers: Iterable[ProfileEntry]
) -> dict[int, int]:
    """Return per entry of the training thread what of it was waiting for a worker's batch.

    What it worked itself while it fetched a batch (unpacking) stays its own.
    """
    if not any(True for _ in workers):
        return {}
    found = {}
    for one in trainer:
        if one.phase == "data_wait":
            found[id(one)] = one.ns if one.working_ns is None else one.ns - one.working_ns
    return found


def _grouped(
    entries: Iterable[ProfileEntry], base: Base, cost: Callable[[ProfileEntry], float]
) -> list[Cost]:
    groups: dict[tuple[str, str, str, int], list[ProfileEntry]] = defaultdict(list)
    for one in entries:
        if one.place is not None:
            phase = "data_wait" if one.role == "worker" else one.phase
            groups[phase, one.role, one.place.file, one.place.line].append(one)
    found = []
    for (phase, role, _, _), group in groups.items():
        largest = max(group, key=lambda one: one.ns)
        own = sum(one.ns for one in group)
        ns = sum(cost(one) for one in group)
        assert largest.place is not None
        found.append(
            Cost(
                phase=phase,
                place=largest.place,
                share=min(1.0, ns / base.ns),
                ns=ns,
                own_ns=own,
                samples=sum(one.samples for one in group),
                role=role,
                part=largest.phase,
                working=_state(group, "working_ns"),
                blocked=_state(group, "blocked_ns"),
                runqueue=_state(group, "runqueue_ns"),
                expressions=_largest(group, lambda one: one.expression),
                leaves=_largest(group, lambda one: one.leaf),
                callers=largest.callers,
                over_time=_summed([one.over_time for one in group]),
            )
        )
    return found


def _state(group: list[ProfileEntry], name: str) -> float | None:
    known = [(getattr(one, name), one.ns) for one in group if getattr(one, name) is not None]
    whole = sum(ns for _, ns in known)
    return sum(part for part, _ in known) / whole if whole else None


def _largest(
    group: list[ProfileEntry], name: Callable[[ProfileEntry], str | None]
) -> tuple[tuple[str, float], ...]:
    sums: dict[str, float] = defaultdict(float)
    for one in group:
        text = name(one)
        if text:
            sums[text] += one.ns
    return tuple(sorted(sums.items(), key=lambda pair: -pair[1]))[:6]


def _summed(rows: list[tuple[int, ...]]) -> tuple[int, ...]:
    length = max((len(row) for row in rows), default=0)
    return tuple(sum(row[i] for row in rows if i < len(row)) for i in range(length))
