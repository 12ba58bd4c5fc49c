"""Where the wall time of a whole run went.

Each trainer's life is cut at two instants, the begin of its first step and the end of its last
tick: start-up before, shut-down after, and between them the steps. Evaluation, checkpoints, epoch
edges and compilation are taken out of whichever of the three they fall into.

A process that was killed leaves no farewell. The time between its last record and the end of the
run then holds steps that were made but not written down, so it is neither steps nor shut-down: it
is missing, and said to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hotlap.account.missing import Missing
from hotlap.account.steady import NOTHING, total_accounts
from hotlap.values.phase import ACCOUNTS, CARVED_PHASES, RUN_PHASES, STEP_PHASES
from hotlap.values.record import Process, Record
from hotlap.values.summary import Part

WORTH_SAYING: Final = 0.001
"""Share of the run below which time without a record is not worth a sentence."""


def last_record_ns(process: Process) -> int:
    """Return the last instant of which the process left a trace (monotonic nanoseconds)."""
    ends = [process.start_ns, process.first_step_ns or 0, process.end_ns or 0]
    return max(*ends, last_tick_ns(process) or 0)


def last_tick_ns(process: Process) -> int | None:
    """Return the instant of the last tick; None when there was none."""
    ends = [window.end_ns for window in process.windows[-1:]]
    ends += [tick.end_ns for tick in process.ticks[-1:]]
    return max(ends, default=None)


def divide(
    chain: Sequence[Process], begin_ns: int, end_ns: int | None, missing: Missing
) -> dict[str, Part]:
    """Divide the time from ``begin_ns`` to ``end_ns`` among the run phases.

    Args:
        chain: processes that trained one after the other.
        begin_ns: monotonic instant at which the time begins.
        end_ns: instant at which it ends; None while the run goes on, or when that was lost.
        missing: takes the reasons of what is None.

    Returns:
        A part for each run phase. When all of them are known their sum is the time divided.
        Shares are of that time, or of the time up to the last record when the end is unknown.
    """
    spent = dict.fromkeys(RUN_PHASES, 0)
    at, lost, killed = begin_ns, 0, False
    for process in chain:
        if process is not chain[0] and at < process.start_ns and killed:
            lost += process.start_ns - at
            at = process.start_ns
        at = _enter(process, spent, at)
        at, gap = _leave(process, spent, at, end_ns if process is chain[-1] else process.end_ns)
        lost += gap
        killed = process.end_ns is None
    finish = end_ns if end_ns is not None else max([at, *(last_record_ns(p) for p in chain)])
    whole = finish - begin_ns
    known = _known(chain, end_ns)
    if abs(lost) > WORTH_SAYING * whole:
        missing.note(
            "unrecorded time of the run",
            f"{_seconds(lost)} between the first and the last record belong to no phase: "
            "records were lost, or a process was killed",
        )
    if not known:
        missing.note("shut_down", _why_unknown(chain[-1], finish - at))
    ns: dict[str, int | None] = dict(spent)
    if not known:
        ns["shut_down"] = None
    return {name: part(value, whole) for name, value in ns.items()}


def part(ns: int | None, whole: float | None) -> Part:
    """Return nanoseconds with their share of a whole; the share is None when the whole is."""
    if ns is None:
        return Part(None, None)
    return Part(ns, ns / whole if whole else None)


def wall(record: Record, trainers: Sequence[Process]) -> int | None:
    """Return the time from the start of the command to its end, or to the last record.

    None when neither is known.
    """
    if record.exit_ns is not None:
        return record.exit_ns - record.spawn_ns
    if not trainers:
        return None
    return max(map(last_record_ns, trainers)) - record.spawn_ns


def _enter(process: Process, spent: dict[str, int], at: int) -> int:
    """Book the time up to the first step; return the instant at which it began."""
    if process.first_step_ns is None:
        return at
    carved = _carve(process.before_first_step or NOTHING, spent)
    spent["start_up"] += process.first_step_ns - at - carved
    return process.first_step_ns


def _leave(process: Process, spent: dict[str, int], at: int, end_ns: int | None) -> tuple[int, int]:
    """Book steps and shut-down; return the last instant booked, and time lost between records."""
    if process.first_step_ns is None:
        return _never_stepped(process, spent, at, end_ns), 0
    last = last_tick_ns(process)
    lost = 0
    if last is not None:
        accounts = total_accounts(process)
        carved = _carve(accounts, spent)
        spent["steps"] += sum(accounts) - carved
        lost = last - at - sum(accounts)
        at = last
    if process.end_ns is None or end_ns is None:
        return at, lost
    carved = _carve(process.after_last_tick or NOTHING, spent)
    spent["shut_down"] += end_ns - at - carved
    return end_ns, lost


def _never_stepped(process: Process, spent: dict[str, int], at: int, end_ns: int | None) -> int:
    """Book a process without any step: all of its time led up to a first step."""
    end = end_ns if end_ns is not None else last_record_ns(process)
    before = process.before_first_step or process.after_last_tick or NOTHING
    spent["start_up"] += end - at - _carve(before, spent)
    return end


def _carve(accounts: tuple[int, ...], spent: dict[str, int]) -> int:
    """Book the carved phases among the accounts; return their sum."""
    named = dict(zip(ACCOUNTS, accounts, strict=True))
    for name in CARVED_PHASES:
        spent[name] += named[name]
    return sum(accounts[len(STEP_PHASES) :])


def _known(chain: Sequence[Process], end_ns: int | None) -> bool:
    last = chain[-1]
    if last.first_step_ns is None:
        return end_ns is not None
    return end_ns is not None and last.end_ns is not None


def _why_unknown(last: Process, rest_ns: int) -> str:
    if last.end_ns is not None:
        return "the run was still going, or its end was not recorded"
    if rest_ns <= 0:
        return "the training process was still at work when it last wrote"
    return (
        f"process {last.pid} left no farewell (killed?); the {_seconds(rest_ns)} after its last "
        "record may hold steps that were not written down, and belong to no phase"
    )


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.3g} s"
