"""What a window over steps measures: accounts and step times, from the ends of its steps."""

from __future__ import annotations

from typing import Final

from hotlap.inject.conditions.deliveries import Deliveries
from hotlap.inject.conditions.drain import thinned
from hotlap.probe.journal import Raw
from hotlap.values.phase import STEP_PHASES
from hotlap.values.trial import WindowPlan, WindowResult

_PARTS: Final = len(STEP_PHASES)
_MOST_SPANS: Final = 240


class Measure:
    """One window, from an instant between two steps on.

    raw: the tick that ended the step before it. deliveries: count what the loaders give. plan: of
    the window; its steps are cut into the same stretches in every run.
    """

    def __init__(self, at_ns: int, raw: Raw, deliveries: Deliveries, plan: WindowPlan) -> None:
        self.begin_ns = self._end_ns = self._span_ns = at_ns
        self.step_ns: list[int] = []
        self._spans_ns: list[int] = []
        self._each = -(-plan.steps // _MOST_SPANS)
        self._base = self._accounts = raw[3]
        self._wall = sum(raw[3][:_PARTS])
        self._deliveries = deliveries
        self._totals = deliveries.totals()

    def step(self, raw: Raw) -> None:
        """Take in the end of a step: what its phases took, without what lay between them."""
        wall = sum(raw[3][:_PARTS])
        self.step_ns.append(wall - self._wall)
        self._wall = wall
        self._end_ns = raw[0]
        self._accounts = raw[3]
        if len(self.step_ns) % self._each == 0:
            self._spans_ns.append(raw[0] - self._span_ns)
            self._span_ns = raw[0]

    def typical_ns(self) -> int | None:
        """Return the median step so far."""
        return sorted(self.step_ns)[len(self.step_ns) // 2] if self.step_ns else None

    def result(self, plan: WindowPlan, ended_by: str, notes: tuple[str, ...]) -> WindowResult:
        """Return what was measured."""
        batches, samples = self._deliveries.since(self._totals)
        differences = zip(self._accounts, self._base, strict=True)
        return WindowResult(
            kind=plan.kind,
            workers=plan.workers,
            begin_ns=self.begin_ns,
            end_ns=self._end_ns,
            steps=len(self.step_ns),
            batches=batches,
            samples=samples,
            accounts=tuple(after - before for after, before in differences),
            step_ns=thinned(self.step_ns),
            spans_ns=tuple(self._spans_ns),
            ended_by=ended_by,
            notes=notes,
        )
