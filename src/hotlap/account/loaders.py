"""What the time of preparing a batch is, loader by loader, summed over its workers.

The five parts exclude each other: collate is taken out of CPU time, of the wait for a core and of
blocked time, in which its own clocks contain it; hand-over to the training process (ipc) comes on
top. Shares are of preparing plus handing over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hotlap.account.missing import Missing
from hotlap.account.run_phases import part
from hotlap.values.phase import WORKER_SPLIT
from hotlap.values.record import Fetches, Loader, Process
from hotlap.values.summary import LoaderSummary, Part


def summarise_loaders(process: Process, missing: Missing) -> tuple[LoaderSummary, ...]:
    """Return the loaders of a process in the order in which it made them.

    Fetches that no known loader explains become a loader of their own at the end, so that no
    work of a worker is dropped.
    """
    groups = match(process)
    known = [
        _summary(loader, groups.get(loader.ordinal, []), process, missing)
        for loader in process.loaders
    ]
    strays = groups.get(None, [])
    if strays:
        known.append(_summary(_unknown_loader(process, strays), strays, process, missing))
    return tuple(known)


def match(process: Process) -> dict[int | None, list[Fetches]]:
    """Group the fetches of a process by ordinal of their loader; None: of no loader known.

    A fetch names its loader; if it does not, the base seed that its worker was given tells, and
    failing that the name of the data set, when only one loader reads that.
    """
    by_seed = {seed: loader.ordinal for loader in process.loaders for seed in loader.base_seeds}
    ordinals = {loader.ordinal for loader in process.loaders}
    groups: dict[int | None, list[Fetches]] = {}
    for fetch in process.fetches:
        home = fetch.loader if fetch.loader in ordinals else None
        if home is None and fetch.base_seed is not None:
            home = by_seed.get(fetch.base_seed)
        if home is None and fetch.dataset:
            readers = [one.ordinal for one in process.loaders if one.dataset == fetch.dataset]
            home = readers[0] if len(readers) == 1 else None
        groups.setdefault(home, []).append(fetch)
    return groups


def split(fetches: Sequence[Fetches]) -> dict[str, int | None]:
    """Return nanoseconds of the parts of ``WORKER_SPLIT``, summed over fetches.

    ``runqueue`` is None when one of the workers could not tell it, ``ipc`` when none handed over.
    """
    spent: dict[str, int | None] = dict.fromkeys(WORKER_SPLIT, 0)
    for fetch in fetches:
        waited = fetch.runqueue_ns
        collate_waited = fetch.collate_runqueue_ns or 0
        rest = fetch.collate_ns - fetch.collate_cpu_ns - collate_waited
        _add(spent, "cpu", max(0, fetch.cpu_ns - fetch.collate_cpu_ns))
        _add(spent, "runqueue", None if waited is None else max(0, waited - collate_waited))
        _add(spent, "blocked", max(0, fetch.blocked_ns - max(0, rest)))
        _add(spent, "collate", fetch.collate_ns)
    handed = [fetch.ipc_ns for fetch in fetches if fetch.ipc_ns is not None]
    spent["ipc"] = sum(handed) if handed else None
    return spent


def _add(spent: dict[str, int | None], name: str, ns: int | None) -> None:
    so_far = spent[name]
    spent[name] = None if so_far is None or ns is None else so_far + ns


def _summary(
    loader: Loader, fetches: Sequence[Fetches], process: Process, missing: Missing
) -> LoaderSummary:
    batches = sum(fetch.batches for fetch in fetches)
    parts = _parts(fetches, batches)
    upper_bound = any(fetch.runqueue_ns is None for fetch in fetches)
    _reasons(loader, batches, upper_bound, missing)
    training = [one for one in process.loaders if one.role == "training"]
    alone = training == [loader] or list(process.loaders) == [loader]
    whole = sum(fetch.wall_ns + (fetch.ipc_ns or 0) for fetch in fetches)
    return LoaderSummary(
        ordinal=loader.ordinal,
        dataset=loader.dataset,
        place=loader.place,
        role=loader.role,
        batch_size=loader.batch_size,
        workers=loader.workers,
        batches=batches,
        batch_ns=round(whole / batches) if batches else None,
        slowest_ns=max((fetch.slowest_ns for fetch in fetches), default=None),
        split=parts,
        upper_bound=upper_bound,
        unpack_ns=process.unpack_ns if alone and loader.workers else None,
        asked_bytes=_total(fetch.asked_bytes for fetch in fetches),
        disk_bytes=_total(fetch.disk_bytes for fetch in fetches),
        iterable=loader.iterable,
    )


def _parts(fetches: Sequence[Fetches], batches: int) -> dict[str, Part]:
    if not batches:
        return {name: Part(None, None) for name in WORKER_SPLIT}
    spent = split(fetches)
    whole = sum(fetch.wall_ns + (fetch.ipc_ns or 0) for fetch in fetches) / batches
    return {
        name: part(None if ns is None else round(ns / batches), whole) for name, ns in spent.items()
    }


def _reasons(loader: Loader, batches: int, upper_bound: bool, missing: Missing) -> None:
    name = f"loader {loader.ordinal} ({loader.dataset})"
    if not batches:
        if loader.role == "training":
            missing.note(f"worker split of {name}", "no batch of it was recorded")
        return
    if upper_bound:
        missing.note(
            f"run-queue wait in {name}",
            "the kernel does not tell how long a thread waits for a core; the blocked part "
            "contains it and is an upper bound",
        )
    if not loader.workers:
        missing.note(
            f"hand-over of {name}", "it has no workers: the training thread prepares batches itself"
        )


def _total(values: Iterable[int | None]) -> int | None:
    known = list(values)
    told = [value for value in known if value is not None]
    return sum(told) if told and len(told) == len(known) else None


def _unknown_loader(process: Process, strays: Sequence[Fetches]) -> Loader:
    names = {fetch.dataset for fetch in strays if fetch.dataset}
    return Loader(
        ordinal=max((loader.ordinal for loader in process.loaders), default=-1) + 1,
        dataset=names.pop() if len(names) == 1 else "unknown",
        place=None,
        batch_size=None,
        workers=len({fetch.worker for fetch in strays if fetch.worker is not None}),
        length=None,
        iterable=False,
        pin_memory=False,
        prefetch=None,
        persistent=False,
    )
