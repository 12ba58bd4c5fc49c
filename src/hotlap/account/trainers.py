"""Which of a run's processes trained, and in what order they did."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.account.run_phases import last_record_ns
from hotlap.values.record import Process, Record


def stepped(process: Process) -> bool:
    """Tell whether the process recorded any tick."""
    return bool(process.ticks or process.windows)


def trainers_of(record: Record) -> list[Process]:
    """Return the processes that trained, by rank and then by start.

    Those that made steps; when there is none, those that take themselves for trainers.
    """
    found = [process for process in record.processes if stepped(process)]
    if not found:
        found = [process for process in record.processes if process.role == "trainer"]
    return sorted(found, key=lambda process: (process.rank or 0, process.start_ns))


def chain_of(trainers: Sequence[Process]) -> list[Process]:
    """Return the trainers of the lowest rank that ran one after the other, the first one first.

    A restarted rank and a sweep that starts a process per training make such a chain. Of
    processes that ran at the same time the first one stands for all.
    """
    lowest = trainers[0].rank
    chain: list[Process] = []
    for process in trainers:
        if process.rank == lowest and (not chain or process.start_ns >= last_record_ns(chain[-1])):
            chain.append(process)
    return chain


def life(process: Process, trainers: Sequence[Process], record: Record) -> tuple[int, int | None]:
    """Return begin and end of the time that a trainer accounts for, in monotonic nanoseconds.

    It is the whole run, but for trainings before it and after it in other processes.
    """
    others = [other for other in trainers if other is not process]
    earlier = any(last_record_ns(other) <= process.start_ns for other in others)
    later = any(other.start_ns >= last_record_ns(process) for other in others)
    begin = process.start_ns if earlier else record.spawn_ns
    return begin, process.end_ns if later else record.exit_ns


def absence(record: Record, trainers: Sequence[Process]) -> str | None:
    """Say why no step was seen, or None when one was."""
    if any(stepped(process) for process in trainers):
        return None
    if trainers:
        return (
            f"process {trainers[0].pid} imported torch but made no step that was seen: no "
            "optimizer stepped, no loader was read and no backward ran"
        )
    if record.processes:
        return "torch was imported, but no process trained"
    if not record.seen:
        return (
            "no Python process of the command reported itself: it was not Python, it was started "
            "with -E, -I or -S, or its environment was replaced; hotlap.measure() in the code "
            "works in all of these"
        )
    if not any(one.get("torch") for one in record.seen):
        return f"{len(record.seen)} Python process(es) started, but none imported torch"
    return "torch was imported, but the process left no record"
