"""What a sampler saw, added up by phase, place and state.

Which phase a look belongs to may be known only later: whether the first step had begun, whether a
stretch was evaluation, whether another step followed. So looks wait until the step that they lie
in has ended; then they are added to a bounded table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hotlap.inject.conditions.instructions import position
from hotlap.inject.conditions.sampler import OTHER, Stack, Stacks
from hotlap.probe.ledger import DATA_WAIT, EPOCH_EDGE
from hotlap.values.phase import ACCOUNTS, CARVED_PHASES

KEYS: Final = 2000
"""Keys of the table; what comes after is added up under no place."""
WAITING: Final = 20_000
"""Looks that wait for the end of their step at most; the older half is then decided."""
SLICES: Final = 64
"""Slices of time that are told apart; when there are more, two become one."""
_SLICE_NS: Final = 1_000_000_000
_LEAF_OF_OTHERS: Final = "other"

Spent = tuple[int, int] | None
Key = tuple[str, Stack]


class Sums:
    """Looks with the same key."""

    __slots__ = ("cpu", "looks", "ns", "queue", "slices", "split_ns")

    def __init__(self) -> None:
        self.looks = self.ns = self.cpu = self.queue = self.split_ns = 0
        self.slices: dict[int, int] = {}

    def add(self, ns: int, spent: Spent, part: int | None) -> None:
        """Add one look. part: the slice of time that it lies in."""
        self.looks += 1
        self.ns += ns
        if spent is not None:
            self.split_ns += ns
            self.cpu += spent[0]
            self.queue += spent[1]
        if part is not None:
            self.slices[part] = self.slices.get(part, 0) + 1

    def merge(self, other: Sums) -> None:
        """Add the looks of another key."""
        for name in ("looks", "ns", "cpu", "queue", "split_ns"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for part, count in other.slices.items():
            self.slices[part] = self.slices.get(part, 0) + count


class Table:
    """Sums by key, and over time from the first step on."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._sums: dict[Key, Sums] = {}
        self.begin_ns: int | None = None
        self.slice_ns = _SLICE_NS

    def add(self, phase: str, at_ns: int, stack: Stack, ns: int, spent: Spent) -> None:
        """Add one look."""
        key = (phase, stack)
        sums = self._sums.get(key)
        if sums is None:
            if len(self._sums) >= KEYS:
                key = (phase, OTHER)
            sums = self._sums.setdefault(key, Sums())
        sums.add(ns, spent, self._part(at_ns))

    def copy_of(self, others: Table) -> None:
        """Take over what another table holds."""
        self.begin_ns, self.slice_ns = others.begin_ns, others.slice_ns
        for key, sums in list(others._sums.items()):
            self._sums.setdefault(key, Sums()).merge(sums)

    def _part(self, at_ns: int) -> int | None:
        if self.begin_ns is None or at_ns < self.begin_ns:
            return None
        part = (at_ns - self.begin_ns) // self.slice_ns
        while part >= SLICES:
            self.slice_ns *= 2
            part //= 2
            for sums in self._sums.values():
                halved: dict[int, int] = {}
                for one, count in sums.slices.items():
                    halved[one // 2] = halved.get(one // 2, 0) + count
                sums.slices = halved
        return part

    def to_dict(self, shown: Callable[[str], str]) -> dict[str, Any]:
        """Return the JSON form: rows, and what their numbers stand for.

        shown: turns the name of a source file into the one that reports show.
        """
        names: dict[Any, int] = {}
        rows = []
        for (phase, frames, span, leaf), sums in self._merged(shown).items():
            for name in (*frames, leaf):
                names.setdefault(name, len(names))
            rows.append(
                {
                    "phase": phase,
                    "frames": [names[one] for one in frames],
                    "span": span,
                    "leaf": names[leaf],
                    "samples": sums.looks,
                    "ns": sums.ns,
                    "split": [sums.split_ns, sums.cpu, sums.queue] if sums.split_ns else None,
                    "slices": sorted(sums.slices.items()),
                }
            )
        return {
            "names": list(names),
            "rows": rows,
            "begin_ns": self.begin_ns,
            "slice_ns": self.slice_ns,
        }

    def _merged(self, shown: Callable[[str], str]) -> dict[tuple[Any, ...], Sums]:
        """Return sums by what a reader tells apart: instructions of one operation are one."""
        merged: dict[tuple[Any, ...], Sums] = {}
        for (phase, stack), sums in self._sums.items():
            merged.setdefault((phase, *self._said(stack, shown)), Sums()).merge(sums)
        return merged

    def _said(self, stack: Stack, shown: Callable[[str], str]) -> tuple[Any, ...]:
        mine, leaf = stack
        if stack == OTHER:
            return (), None, _LEAF_OF_OTHERS
        frames = []
        span = None
        for number, (key, value) in enumerate(mine):
            code, _ = self._stacks.codes[key]
            if number == 0:
                line, span = position(code, value)
            else:
                line = value
            frames.append((shown(code.co_filename), line, code.co_name))
        return tuple(frames), span, self._stacks.codes[leaf][1]


class Waiting:
    """Looks at a training thread, until it is known which phase they belong to.

    ledger, timeline, journal: of the probe; they are read only.
    """

    def __init__(self, table: Table, ledger: Any, timeline: Any, journal: Any) -> None:
        self._table = table
        self._ledger = ledger
        self._timeline = timeline
        self._journal = journal
        self._looks: list[tuple[int, Stack, int, Spent, int, int, Any]] = []
        self._at_edge = False

    def look(self, now: int, stack: Stack, ns: int, spent: Spent) -> None:
        """Take in one look."""
        timeline = self._timeline
        account, ticks, stretch = self._ledger.current, timeline.ticks, timeline.stretch
        looks = self._looks
        if looks and (looks[0][4] != ticks or len(looks) >= WAITING):
            self._decide(ticks)
        if timeline.at_edge != self._at_edge:
            self._at_edge = timeline.at_edge
            if self._at_edge:
                self._exhausted()
        if ticks == 0 and stretch is None and not timeline.may_have_begun():
            self._decide(1)
            self._table.add(_outside(account, "start_up"), now, stack, ns, spent)
            return
        self._looks.append((now, stack, ns, spent, ticks, account, stretch))

    def _exhausted(self) -> None:
        """There was no other batch: the wait for it, up to the last look, was the epoch's edge."""
        looks = self._looks
        for at in range(len(looks) - 1, -1, -1):
            if looks[at][5] != DATA_WAIT:
                break
            looks[at] = (*looks[at][:5], EPOCH_EDGE, looks[at][6])

    def _decide(self, ticks: int) -> None:
        """Add the looks of steps that have ended to the table; too many: the older half."""
        looks = self._looks
        self._learn_begin()
        ended = [one for one in looks if one[4] < ticks] or looks[: len(looks) // 2]
        self._looks = looks[len(ended) :]
        for one in ended:
            self._add(self._table, one, ended=True)

    def _learn_begin(self) -> None:
        if self._table.begin_ns is None:
            self._table.begin_ns = self._journal.first_step_ns

    def whole(self, closed: bool) -> Table:
        """Return the table with what still waits. closed: the run has ended, no step follows."""
        self._learn_begin()
        table = Table(self._table._stacks)
        table.copy_of(self._table)
        for one in list(self._looks):
            self._add(table, one, ended=not closed or one[4] < self._timeline.ticks)
        return table

    def _add(self, table: Table, one: tuple[Any, ...], ended: bool) -> None:
        now, stack, ns, spent, _, account, stretch = one
        begin = table.begin_ns
        until = 0
        if stretch is not None:
            until = stretch.until_ns
            if until is None:  # open still: what it has seen so far has to do
                until = now if stretch.passes else 0
        if now <= until and ACCOUNTS[account] not in ("checkpoint", "compile"):
            phase = "evaluation"
        elif begin is None or now <= begin:
            phase = _outside(account, "start_up")
        elif not ended:
            phase = _outside(account, "shut_down")
        else:
            phase = ACCOUNTS[account]
        table.add(phase, now, stack, ns, spent)


def _outside(account: int, phase: str) -> str:
    """Return the phase of time outside of all steps: what is taken out of steps is here too."""
    name = ACCOUNTS[account]
    if name == "epoch_edge" and phase == "shut_down":
        return phase  # no other epoch follows
    return name if name in CARVED_PHASES else phase
