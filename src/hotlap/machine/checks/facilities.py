"""Checks of what the probe wants of the kernel."""

from __future__ import annotations

from hotlap.machine.checks.check import Check
from hotlap.machine.checks.surroundings import Surroundings
from hotlap.machine.kernel import Facility


def _check(name: str, facility: Facility, with_it: str, without: str, fix: str | None) -> Check:
    if facility.works is None:
        return Check(name, "unknown", facility.seen, without)
    if facility.works:
        return Check(name, "good", facility.seen, with_it)
    return Check(name, "absent", facility.seen, without, fix)


def run_queue(seen: Surroundings) -> Check:
    """Time that a thread waits for a core, from the scheduler."""
    return _check(
        "waiting for a core",
        seen.schedstat,
        "a worker that waits for a core is told apart from one that waits for its data",
        "the 'blocked' part of a worker's time contains waiting for a core: an upper bound",
        "a kernel with CONFIG_SCHED_INFO (those of the big distributions have it)"
        if seen.system == "Linux"
        else None,
    )


def thread_io(seen: Surroundings) -> Check:
    """Bytes that a thread asked for and that came from storage."""
    return _check(
        "bytes per thread",
        seen.thread_io,
        "reads from storage are told apart from reads out of the page cache, per batch",
        "what a loader reads from storage cannot be counted",
        "a kernel with CONFIG_TASK_IO_ACCOUNTING, and a container that lets /proc be read"
        if seen.system == "Linux"
        else None,
    )


def pressure(seen: Surroundings) -> Check:
    """Pressure stall information of the machine."""
    return _check(
        "pressure",
        seen.pressure,
        "how long the whole machine waits for cores, disks and memory is in the report",
        "the report cannot say whether the machine as a whole was short of something",
        "boot with psi=1 (a kernel with CONFIG_PSI)" if seen.system == "Linux" else None,
    )


def namespaces(seen: Surroundings) -> Check:
    """User and mount namespaces with overlay: a private view of the file system."""
    return _check(
        "private file view",
        seen.namespaces,
        "a program can be given a copy-on-write view of your files",
        "what a program writes cannot be kept apart from your files by the kernel",
        None,
    )
