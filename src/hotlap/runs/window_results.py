"""What the windows of a trial measured, and which of the loaders' work belongs to each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from hotlap.runs.fitting import accounts_of, need
from hotlap.values.record import Fetches
from hotlap.values.trial import WindowResult

SPLIT: Final = ("wall_ns", "cpu_ns", "runqueue_ns", "blocked_ns", "collate_ns")
_COUNTED: Final = ("batches", "samples")


@dataclass(frozen=True)
class Measured:
    """A result, and what of the loaders' work belongs to it.

    stretches: the times in which it was measured. loaders, datasets: ordinals of the training
    loaders, and the types of their data sets.
    """

    result: WindowResult
    stretches: tuple[tuple[int, int], ...]
    loaders: tuple[int, ...]
    datasets: tuple[str, ...]

    def holds(self, one: Fetches) -> bool:
        """Tell whether a record belongs to it: by its middle, and by its loader.

        A worker knows no loader, but its data set.
        """
        middle = (one.begin_ns + one.end_ns) // 2
        if not any(begin <= middle < end for begin, end in self.stretches):
            return False
        if one.loader is not None:
            return one.loader in self.loaders
        return one.dataset in self.datasets


def measured_of(value: Any) -> Measured:
    """Return a result as a trial wrote it. Raises what ``fitting.UNFIT`` names where it is none."""
    result = _result_of(value)
    pairs = need(value.get("segments", []), list, "segments")
    stretches = [need(tuple(one), tuple[int, ...], "segment") for one in pairs]
    if any(len(one) != 2 for one in stretches):
        raise ValueError("a segment has other than two ends")
    return Measured(
        result,
        tuple(stretches) or ((result.begin_ns, result.end_ns),),
        need(tuple(value["loaders"]), tuple[int, ...], "loaders"),
        need(tuple(value["datasets"]), tuple[str, ...], "datasets"),
    )


def _result_of(value: Any) -> WindowResult:
    return WindowResult(
        kind=need(value["kind"], str, "kind"),
        workers=need(value["workers"], int | None, "workers"),
        **{name: _natural(value, name) for name in ("begin_ns", "end_ns", "steps", "batches")},
        samples=need(value["samples"], int | None, "samples"),
        accounts=accounts_of(value["accounts"]),
        step_ns=need(tuple(value["step_ns"]), tuple[int, ...], "step_ns"),
        spans_ns=need(tuple(value.get("spans_ns", ())), tuple[int, ...], "spans_ns"),
        split=dict(need(value.get("split", {}), dict[str, int | None], "split")),
        ended_by=need(value["ended_by"], str, "ended_by"),
        notes=need(tuple(value["notes"]), tuple[str, ...], "notes"),
    )


def _natural(value: Any, name: str) -> int:
    number: int = need(value[name], int, name)
    if number < 0:
        raise ValueError(f"{name} is {number}, a negative number")
    return number


def with_splits(
    results: Iterable[Measured], fetches: Iterable[Fetches]
) -> tuple[WindowResult, ...]:
    """Return the results, each with the work of the loaders that lies in it.

    A record of a worker belongs to the window in which its middle lies. In a trial such a record
    is of one batch, or of 20 ms of quicker ones; at the edges of a window one for each worker may
    be on the wrong side.
    """
    known = list(fetches)
    return tuple(one.result if one.result.split else _with_split(one, known) for one in results)


def _with_split(measured: Measured, fetches: list[Fetches]) -> WindowResult:
    inside = [one for one in fetches if measured.holds(one)]
    if not inside:
        return measured.result
    split: dict[str, int | None] = {}
    for name in (*SPLIT, *_COUNTED):
        values = [getattr(one, name) for one in inside]
        split[name] = None if None in values else sum(values)
    return replace(measured.result, split=split)
