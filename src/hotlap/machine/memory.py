"""Memory: total and free, the limit of the control group, ``/dev/shm`` and swap."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hotlap.machine import cgroup
from hotlap.machine.readfile import ROOT, key_values, read


@dataclass(frozen=True)
class Memory:
    """Bytes; None: not known. ``limit_bytes`` is None as well when no limit is set.

    available_bytes: what programs can still take, the group's limit not considered.
    usable_bytes: the same with the limit considered. group_usage_bytes contains page cache.
    """

    total_bytes: int | None
    available_bytes: int | None
    limit_bytes: int | None
    group_usage_bytes: int | None
    usable_bytes: int | None
    swap_total_bytes: int | None
    swap_used_bytes: int | None


@dataclass(frozen=True)
class Space:
    """Size and free bytes (for an ordinary user) of a file system."""

    total_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class Swapping:
    """Cumulative bytes read from and written to swap since boot."""

    in_bytes: int
    out_bytes: int


def parse_meminfo(text: str) -> dict[str, int]:
    """Parse ``/proc/meminfo`` into bytes by name."""
    return {name: number * 1024 for name, number in key_values(text).items()}


def usable(available: int | None, group: cgroup.MemoryGroup | None) -> int | None:
    """Return what can still be taken: the machine's free memory, or what is left of the limit.

    Pages of files that the group does not use actively can be dropped, so they count as free.
    """
    if group is None or group.limit_bytes is None or group.usage_bytes is None:
        return available
    used = max(0, group.usage_bytes - (group.reclaimable_bytes or 0))
    left = max(0, group.limit_bytes - used)
    return left if available is None else min(available, left)


def read_memory(root: Path = ROOT, process: int | str = "self") -> Memory:
    """Read memory and the limit that holds for a process; every field may be None."""
    info = parse_meminfo(read(root / "proc/meminfo") or "")
    located = cgroup.locate("memory", root, process)
    group = cgroup.memory(located) if located else None
    available = info.get("MemAvailable")
    swap_total, swap_free = info.get("SwapTotal"), info.get("SwapFree")
    used = swap_total - swap_free if swap_total is not None and swap_free is not None else None
    return Memory(
        total_bytes=info.get("MemTotal"),
        available_bytes=available,
        limit_bytes=group.limit_bytes if group else None,
        group_usage_bytes=group.usage_bytes if group else None,
        usable_bytes=usable(available, group),
        swap_total_bytes=swap_total,
        swap_used_bytes=used,
    )


def read_available(root: Path = ROOT) -> int | None:
    """Return ``MemAvailable`` in bytes, cheaply; None without it."""
    return parse_meminfo(read(root / "proc/meminfo") or "").get("MemAvailable")


def space(path: Path | str) -> Space | None:
    """Return size and free bytes of the file system at a path; None when it cannot be asked."""
    try:
        found = os.statvfs(path)
    except (OSError, AttributeError):
        return None
    return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def read_shm(root: Path = ROOT) -> Space | None:
    """Return the size of ``/dev/shm``, where loader workers leave batches; None without it."""
    folder = root / "dev/shm"
    return space(folder) if folder.is_dir() else None


def parse_vmstat(text: str, page_bytes: int) -> Swapping | None:
    """Parse ``pswpin`` and ``pswpout`` of ``/proc/vmstat``; None when it does not have them."""
    values = key_values(text)
    if "pswpin" not in values or "pswpout" not in values:
        return None
    return Swapping(values["pswpin"] * page_bytes, values["pswpout"] * page_bytes)


def page_bytes() -> int:
    """Return the size of a page of memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE")


def read_swapping(root: Path = ROOT) -> Swapping | None:
    """Read the cumulative swap traffic; None where the kernel does not tell."""
    text = read(root / "proc/vmstat")
    return None if text is None else parse_vmstat(text, page_bytes())
