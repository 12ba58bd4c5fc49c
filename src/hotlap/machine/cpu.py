"""Cores: how many are visible, allowed and granted, what they can do, and how busy they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hotlap.machine import cgroup
from hotlap.machine.readfile import ROOT, read

_BF16_FLAGS: Final = ("amx_bf16", "avx512_bf16", "bf16", "svebf16")
"""x86 first, then Arm. ``sve`` alone brings no bf16."""


@dataclass(frozen=True)
class Cores:
    """How many cores there are and how many we may use; None: not known.

    visible: logical cores that are online, what ``os.cpu_count()`` tells a script.
    physical: the same without hyper-threads. affinity: cores that the process may be put on.
    quota: cores' worth of time that a control group grants (1.5: one and a half).
    allowed: min of affinity and quota, or visible if neither is known.
    cpus: numbers of the cores in the affinity.
    """

    visible: int | None
    physical: int | None
    affinity: int | None
    quota: float | None
    allowed: float | None
    cpus: tuple[int, ...] | None


@dataclass(frozen=True)
class Processor:
    """Model and instructions. ``bf16`` names the flags that bring bf16 arithmetic, often none."""

    model: str | None
    bf16: tuple[str, ...]
    avx2: bool
    avx512: bool
    arm: bool
    virtual: bool
    """A hypervisor announces itself; False on Arm only says that it does not."""


@dataclass(frozen=True)
class BusyTimes:
    """Cumulative times since boot.

    busy_ns: per core number, user + nice + system + irq + softirq; None for a core offline.
    total_ns: all cores, idle, iowait and steal included. steal_ns: all cores, taken by the host.
    """

    busy_ns: tuple[int | None, ...]
    total_ns: int
    steal_ns: int


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Parse a kernel list of cores such as ``0-3,8,10-11``; raises ValueError on other text."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def _read_cpu_list(text: str | None) -> tuple[int, ...] | None:
    try:
        return (parse_cpu_list(text) or None) if text is not None else None
    except ValueError:
        return None


def parse_affinity(status: str) -> tuple[int, ...] | None:
    """Return ``Cpus_allowed_list`` of ``/proc/PID/status``; None when it has no such line."""
    for line in status.splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return _read_cpu_list(line.partition(":")[2])
    return None


def parse_physical(cpuinfo: str) -> int | None:
    """Count different pairs of socket and core; None where the kernel does not name them."""
    pairs = set()
    for block in cpuinfo.split("\n\n"):
        fields = _fields(block)
        if "core id" in fields:
            pairs.add((fields.get("physical id"), fields["core id"]))
    return len(pairs) or None


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def read_cores(root: Path = ROOT, process: int | str = "self") -> Cores:
    """Read how many cores a process sees and may use.

    Affinity contains cpusets. Quotas of parent groups count as much as our own.
    """
    online = _read_cpu_list(read(root / "sys/devices/system/cpu/online"))
    cpus = parse_affinity(read(root / f"proc/{process}/status") or "")
    visible = len(online) if online else None
    if visible is None and root == ROOT:
        visible = os.cpu_count()
    group = cgroup.locate("cpu", root, process)
    quota = cgroup.cpu_quota(group) if group else None
    affinity = len(cpus) if cpus else None
    within = affinity if affinity is not None else visible
    bounds = [bound for bound in (within, quota) if bound is not None]
    return Cores(
        visible=visible,
        physical=parse_physical(read(root / "proc/cpuinfo") or ""),
        affinity=affinity,
        quota=quota,
        allowed=float(min(bounds)) if bounds else None,
        cpus=cpus,
    )


def parse_processor(cpuinfo: str) -> Processor | None:
    """Parse ``/proc/cpuinfo``: model and flags of the first core; None when it names no flags."""
    model: str | None = None
    flags: set[str] | None = None
    arm = False
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        name = name.strip()
        if name == "model name" and model is None:
            model = value.strip() or None
        elif name in ("flags", "Features") and flags is None:
            flags, arm = set(value.split()), name == "Features"
    if flags is None:
        return None
    return Processor(
        model=model,
        bf16=tuple(flag for flag in _BF16_FLAGS if flag in flags),
        avx2="avx2" in flags,
        avx512="avx512f" in flags,
        arm=arm,
        virtual="hypervisor" in flags,
    )


def read_processor(root: Path = ROOT) -> Processor | None:
    """Read the processor's model and instructions; None without ``/proc/cpuinfo``."""
    text = read(root / "proc/cpuinfo")
    return None if text is None else parse_processor(text)


def parse_stat(text: str, tick_ns: int) -> BusyTimes | None:
    """Parse ``/proc/stat``; ``tick_ns`` is the unit of its counters. None without core lines.

    Columns: proc_stat(5). Guest time is part of user time already, so it is not added.
    """
    busy: dict[int, int] = {}
    total = steal = 0
    for line in text.splitlines():
        if not line.startswith("cpu"):
            break
        words = line.split()
        if words[0] == "cpu":
            continue
        user, nice, system, idle, iowait, irq, softirq, stolen = (
            int(word) * tick_ns for word in (words[1:9] + ["0"] * 8)[:8]
        )
        work = user + nice + system + irq + softirq
        busy[int(words[0][3:])] = work
        total += work + idle + iowait + stolen
        steal += stolen
    if not busy:
        return None
    cores = tuple(busy.get(number) for number in range(max(busy) + 1))
    return BusyTimes(cores, total, steal)


def tick_ns() -> int:
    """Return the length of a clock tick of ``/proc`` in nanoseconds (10 ms nearly everywhere)."""
    return 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def read_busy_times(root: Path = ROOT) -> BusyTimes | None:
    """Read cumulative busy times; None without ``/proc/stat``."""
    text = read(root / "proc/stat")
    return None if text is None else parse_stat(text, tick_ns())


def read_load(root: Path = ROOT) -> float | None:
    """Return the load average of the last minute; None where there is none."""
    text = read(root / "proc/loadavg")
    try:
        if text is not None:
            return float(text.split()[0])
        return os.getloadavg()[0] if root == ROOT else None
    except (OSError, ValueError, IndexError):
        return None


def read_throttling(root: Path = ROOT, process: int | str = "self") -> cgroup.Throttling | None:
    """Read the throttling counters that count for a process; None where there are none."""
    group = cgroup.locate("cpu", root, process)
    return None if group is None else cgroup.throttling(group)
