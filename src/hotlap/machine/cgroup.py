"""Control groups, versions 1 and 2: where ours lie, and what they and their parents grant.

Source of file names and units: the kernel's ``cgroup-v1`` and ``cgroup-v2`` documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from hotlap.machine.mounts import Mount, read_mounts
from hotlap.machine.readfile import ROOT, key_values, read, read_int

_NO_LIMIT_BYTES: Final = 1 << 60
"""Version 1 writes "no limit" as the largest number of pages; no machine has this much memory."""


@dataclass(frozen=True)
class Group:
    """Our control group for one controller.

    version: 1 or 2. levels: folders from our own group up to the topmost that we can see.
    """

    version: int
    levels: tuple[Path, ...]


@dataclass(frozen=True)
class Throttling:
    """Cumulative counters of the level that sets the quota.

    periods: accounting periods in which the group wanted to run. throttled_periods: those in
    which it was stopped. throttled_ns: time stopped, summed over cores.
    """

    periods: int
    throttled_periods: int
    throttled_ns: int


@dataclass(frozen=True)
class MemoryGroup:
    """Memory of the group: its limit, its use, and the part of that use that can be dropped."""

    limit_bytes: int | None
    usage_bytes: int | None
    reclaimable_bytes: int | None


def parse_membership(text: str) -> dict[str, str]:
    """Parse ``/proc/PID/cgroup`` into ``{controller: path}``; version 2 has the key ``""``."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3:
            for controller in fields[1].split(","):
                found[controller] = fields[2]
    return found


def _levels(mount: Mount, path: str, root: Path) -> tuple[Path, ...]:
    """Return the folders from our group up to the mount point, nearest first.

    In a container the path may be the host's while only the group itself is mounted (``top``).
    """
    top = root / mount.point.lstrip("/")
    inside = PurePosixPath(path)
    if inside.is_relative_to(mount.top):
        inside = inside.relative_to(mount.top)
    parts = [part for part in inside.parts if part != "/"]
    if ".." in parts or not (top / "/".join(parts)).is_dir():
        return (top,)
    return tuple(top.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))


def locate(controller: str, root: Path = ROOT, process: int | str = "self") -> Group | None:
    """Return the group of a process for a controller (``cpu``, ``memory``); None if unknown."""
    text = read(root / f"proc/{process}/cgroup")
    mounts = read_mounts(root)
    if text is None or mounts is None:
        return None
    membership = parse_membership(text)
    if controller in membership:
        # The last mount of a controller is the one on top when several share a mount point.
        for mount in reversed(mounts):
            if mount.file_system == "cgroup" and controller in mount.options:
                return Group(1, _levels(mount, membership[controller], root))
    if "" in membership:
        for mount in reversed(mounts):
            if mount.file_system == "cgroup2":
                return Group(2, _levels(mount, membership[""], root))
    return None


def parse_cpu_max(text: str) -> float | None:
    """Parse version 2's ``cpu.max`` ("quota period" or "max period") into cores; None: no quota."""
    words = text.split()
    if len(words) != 2 or words[0] == "max":
        return None
    try:
        quota, period = int(words[0]), int(words[1])
    except ValueError:
        return None
    return quota / period if period > 0 else None


def _level_quota(version: int, folder: Path) -> float | None:
    if version == 2:
        text = read(folder / "cpu.max")
        return None if text is None else parse_cpu_max(text)
    quota = read_int(folder / "cpu.cfs_quota_us")
    period = read_int(folder / "cpu.cfs_period_us")
    if quota is None or period is None or quota <= 0 or period <= 0:
        return None
    return quota / period


def _tightest(group: Group) -> tuple[float | None, Path]:
    """Return the smallest quota on the way up and the folder that sets it (ours if none does)."""
    best: float | None = None
    where = group.levels[0]
    for folder in group.levels:
        quota = _level_quota(group.version, folder)
        if quota is not None and (best is None or quota < best):
            best, where = quota, folder
    return best, where


def cpu_quota(group: Group) -> float | None:
    """Return the cores that the group may use on average, the smallest of all levels, or None."""
    return _tightest(group)[0]


def parse_cpu_stat(text: str, version: int) -> Throttling | None:
    """Parse ``cpu.stat``; None when it has no throttling counters (version 2's root group)."""
    values = key_values(text)
    throttled = values.get("throttled_usec" if version == 2 else "throttled_time")
    if throttled is None or "nr_periods" not in values or "nr_throttled" not in values:
        return None
    scale = 1000 if version == 2 else 1
    return Throttling(values["nr_periods"], values["nr_throttled"], throttled * scale)


def throttling(group: Group) -> Throttling | None:
    """Return the throttling counters of the level with the smallest quota (ours without one)."""
    text = read(_tightest(group)[1] / "cpu.stat")
    return None if text is None else parse_cpu_stat(text, group.version)


def parse_memory_limit(text: str) -> int | None:
    """Parse a memory limit in bytes; None when it says that there is none."""
    try:
        limit = int(text)
    except ValueError:
        return None
    return limit if 0 <= limit < _NO_LIMIT_BYTES else None


def _smallest(numbers: Sequence[int | None]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def memory(group: Group) -> MemoryGroup:
    """Return the limit (the smallest of all levels) and the use at the level that sets it."""
    names = ("memory.max", "memory.current", "inactive_file")
    if group.version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    limits: list[int | None] = []
    for folder in group.levels:
        text = read(folder / names[0])
        limits.append(None if text is None else parse_memory_limit(text))
    limit = _smallest(limits)
    folder = group.levels[limits.index(limit)] if limit is not None else group.levels[0]
    stat = read(folder / "memory.stat")
    return MemoryGroup(
        limit_bytes=limit,
        usage_bytes=read_int(folder / names[1]),
        reclaimable_bytes=None if stat is None else key_values(stat).get(names[2]),
    )
