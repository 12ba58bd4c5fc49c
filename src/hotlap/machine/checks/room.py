"""Checks of memory and disks."""

from __future__ import annotations

from typing import Final

from hotlap.machine.checks.check import Check, count, size
from hotlap.machine.checks.surroundings import Surroundings
from hotlap.machine.disks import Disk

_IMAGE_BATCH_BYTES: Final = 64 * 3 * 224 * 224 * 4
"""A batch that everybody knows, 64 float32 images of 224 x 224: to make a size of memory plain."""

_PREFETCH: Final = 2
"""Batches that a DataLoader worker prepares ahead by default."""


def memory(seen: Surroundings) -> Check:
    """Memory, and the limit of the control group below which it must stay."""
    name, found = "memory", seen.memory
    if found.total_bytes is None or found.usable_bytes is None:
        because = f"there is no /proc/meminfo to read on this {seen.system} system"
        return Check(name, "unknown", because, "what fits cannot be said")
    total, usable = size(found.total_bytes), size(found.usable_bytes)
    if found.limit_bytes is not None and found.limit_bytes < found.total_bytes:
        limit = size(found.limit_bytes)
        return Check(
            name,
            "limited",
            f"{total} in the machine, but a limit of {limit} on this group, {usable} left",
            f"programs see {total} and are killed at {limit}; cached files count towards it, so "
            "larger data is read again in each epoch",
            "a larger limit (docker --memory, limits.memory, Slurm --mem), or smaller data",
        )
    words = f"{total}, {usable} of it free, no limit by a control group"
    consequence = "files that fit beside the training stay cached from one epoch to the next"
    return Check(name, "good", words, consequence)


def swap(seen: Surroundings) -> Check:
    """Swap, and whether something lies in it."""
    name, total, used = "swap", seen.memory.swap_total_bytes, seen.memory.swap_used_bytes
    if total is None or used is None:
        because = f"there is no /proc/meminfo to read on this {seen.system} system"
        return Check(name, "unknown", because, "slow steps by swapping would not be seen")
    if total == 0:
        return Check(name, "good", "none", "memory that runs out ends a process, it slows none")
    words = f"{size(total)}, {size(used)} used"
    if used == 0:
        return Check(name, "good", words, "nothing had to be put there yet")
    return Check(
        name,
        "limited",
        words,
        "memory was short before; what lies there is slow when it is needed again",
        "fewer workers or smaller caches, if it grows while training",
    )


def shared_memory(seen: Surroundings) -> Check:
    """``/dev/shm``, where loader workers leave their batches: too little ends in a bus error."""
    name, found = "shared memory", seen.shm
    if seen.system != "Linux":
        words = f"{seen.system} has no /dev/shm"
        return Check(name, "unknown", words, "loader workers hand over batches in another way")
    if found is None:
        return Check(
            name,
            "absent",
            "there is no /dev/shm",
            "a DataLoader with workers fails at its first batch",
            "mount a tmpfs at /dev/shm, or num_workers=0",
        )
    workers = max(1, int(seen.cores.allowed or 1))
    wanted = workers * _PREFETCH * _IMAGE_BATCH_BYTES
    words = f"/dev/shm has {size(found.free_bytes)} free of {size(found.total_bytes)}"
    held = found.free_bytes // _IMAGE_BATCH_BYTES
    consequence = f"room for {count(held, 'batch', 'batches')} of {size(_IMAGE_BATCH_BYTES)} each"
    consequence += " (64 images of 224 x 224)"
    if found.free_bytes >= wanted:
        return Check(name, "good", words, consequence)
    return Check(
        name,
        "limited",
        words,
        f"{consequence}; {count(workers, 'worker')} with {_PREFETCH} ahead want "
        f"{workers * _PREFETCH}: the rest ends in a bus error",
        "docker --shm-size=8g (Kubernetes: an emptyDir of medium Memory), or fewer workers",
    )


def storage(seen: Surroundings) -> tuple[Check, ...]:
    """What lies behind each path given."""
    if seen.disks is None:
        because = f"no mounts can be read on this {seen.system} system"
        consequence = "only a measured run tells how fast its data comes"
        return tuple(
            Check("storage", "unknown", f"{path}: {because}", consequence) for path in seen.paths
        )
    hypervisor = seen.processor is not None and seen.processor.virtual
    return tuple(_space(disk, _disk(disk, hypervisor)) for disk in seen.disks)


def _disk(disk: Disk, hypervisor: bool) -> Check:
    """Judge the way that data comes; room is judged apart."""
    name = "storage"
    words = f"{disk.path}: {disk.file_system}"
    if not disk.exists:
        where = f"{disk.path}: no such path (its place would be on {disk.file_system})"
        return Check(name, "absent", where, "nothing can be read from there", "check the spelling")
    if disk.kind == "network":
        return Check(
            name,
            "limited",
            f"{words} from {disk.source}, over the network",
            "opening a file costs a round trip: many small files come slowly, a few big ones well",
            "copy the data to a local disk, or pack many samples into one file",
        )
    if disk.kind == "memory":
        return Check(name, "good", f"{words}, in memory", "nothing is faster; it takes up memory")
    if disk.kind == "host":
        return Check(
            name,
            "limited",
            f"{words}, a folder that the host shares",
            "each call goes to the host: many small files come slowly",
            "copy the data to the machine's own disk",
        )
    if disk.kind in ("layered", "fuse"):
        what = "a container's own layers" if disk.kind == "layered" else "served by a program"
        consequence = "what lies behind is not shown: only a measured run tells how fast it is"
        return Check(name, "unknown", f"{words}, {what}", consequence)
    return _block(disk, words, hypervisor)


def _block(disk: Disk, words: str, hypervisor: bool) -> Check:
    name = "storage"
    measured = "only a measured run tells how fast it is"
    if disk.device is None or disk.rotational is None:
        return Check(name, "unknown", f"{words} on {disk.source}, disk not known", measured)
    words += f" on {disk.device}"
    if disk.virtual or hypervisor:
        seen = f"{words}, a disk that a hypervisor shows"
        return Check(name, "unknown", seen, f"what lies behind is not shown: {measured}")
    if disk.rotational:
        return Check(
            name,
            "limited",
            f"{words}, which spins",
            "each read elsewhere on the disk waits for its head: some hundred a second at best",
            "pack many samples into one file and read it in order, or move to solid state",
        )
    return Check(name, "good", f"{words}, solid state", "many small reads in any order do well")


def _space(disk: Disk, check: Check) -> Check:
    """Add the room that is left; below 1 GiB or 2 % it is the first thing to say."""
    if disk.free_bytes is None or not disk.total_bytes or not disk.exists:
        return check
    room = f"{size(disk.free_bytes)} free of {size(disk.total_bytes)}"
    seen = f"{check.seen}, read-only" if disk.read_only else f"{check.seen}, {room}"
    short = disk.free_bytes < max(1 << 30, disk.total_bytes // 50)
    if not short or disk.read_only or disk.kind == "memory":
        return Check(check.name, check.state, seen, check.consequence, check.fix)
    return Check(
        check.name,
        "limited",
        seen,
        "nearly full: a checkpoint or a cache may not fit",
        "make room, or write elsewhere",
    )
