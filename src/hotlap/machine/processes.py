"""A process and all that it started: memory, CPU time, bytes from and to storage.

On Linux ``/proc`` is read directly, because a scan of all processes costs more than the reading.
Elsewhere psutil is asked. A process that vanishes meanwhile is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hotlap.machine.cpu import tick_ns
from hotlap.machine.memory import page_bytes
from hotlap.machine.readfile import ROOT, key_values, read


@dataclass(frozen=True)
class ProcessStat:
    """One line of ``/proc/PID/stat``. cpu_ns contains children that ended and were waited for."""

    parent: int
    state: str
    cpu_ns: int
    rss_bytes: int


@dataclass(frozen=True)
class Tree:
    """A tree of processes.

    rss_bytes: resident memory, summed. Pages that forked processes share are counted in each, so
    this is an upper bound as soon as ``processes`` is above 1.
    cpu_ns: cumulative; it goes on counting for a process that ended and was waited for.
    disk_read_bytes, disk_write_bytes: cumulative, of storage and not of the page cache; None when
    no process of the tree may be asked.
    """

    processes: int
    rss_bytes: int
    cpu_ns: int
    disk_read_bytes: int | None
    disk_write_bytes: int | None


def parse_process_stat(text: str, tick: int, page: int) -> ProcessStat | None:
    """Parse ``/proc/PID/stat`` (proc_pid_stat(5)); None when the line is cut.

    tick: nanoseconds of a clock tick. page: bytes of a page. The command in brackets may contain
    blanks and brackets, so fields are counted from the last bracket.
    """
    words = text[text.rfind(")") + 1 :].split()
    if len(words) < 22:
        return None
    return ProcessStat(
        parent=int(words[1]),
        state=words[0],
        cpu_ns=sum(int(word) for word in words[11:15]) * tick,
        rss_bytes=max(0, int(words[21])) * page,
    )


def _children(pid: int, root: Path) -> list[int] | None:
    """Return the children that the kernel lists; None where it keeps no list, or pid is gone."""
    tasks = f"{root}/proc/{pid}/task"
    try:
        threads = os.listdir(tasks)
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        text = read(f"{tasks}/{thread}/children")
        if text is None:
            # A thread that ended leaves no folder; a kernel without lists leaves no file.
            if os.path.isdir(f"{tasks}/{thread}"):
                return None
            continue
        found.extend(int(word) for word in text.split())
    return found


def _scan(root: Path) -> dict[int, list[int]]:
    """Return the children of every process, by reading them all."""
    found: dict[int, list[int]] = {}
    for name in os.listdir(f"{root}/proc"):
        if name.isdigit():
            stat = parse_process_stat(read(f"{root}/proc/{name}/stat") or "", 1, 1)
            if stat is not None:
                found.setdefault(stat.parent, []).append(int(name))
    return found


def members(pid: int, root: Path = ROOT) -> list[int]:
    """Return a process and its descendants, the process first. Whether they live is not checked."""
    found, scanned = [pid], None
    for member in found:
        children = _children(member, root) if scanned is None else scanned.get(member, [])
        if children is None:
            scanned = _scan(root)
            children = scanned.get(member, [])
        found.extend(child for child in children if child not in found)
    return found


def read_tree(pid: int, root: Path = ROOT) -> Tree | None:
    """Read a tree of processes; None when the process is gone.

    Cost: about 50 microseconds per process, and 10 per further thread.
    """
    if not os.path.isdir(f"{root}/proc/self") and root == ROOT:
        return _ask_psutil(pid)
    tick, page = tick_ns(), page_bytes()
    stats: list[ProcessStat] = []
    reads: list[int] = []
    writes: list[int] = []
    for member in members(pid, root):
        stat = parse_process_stat(read(f"{root}/proc/{member}/stat") or "", tick, page)
        if stat is None:
            continue
        stats.append(stat)
        io = key_values(read(f"{root}/proc/{member}/io") or "")
        if "read_bytes" in io and "write_bytes" in io:
            reads.append(io["read_bytes"])
            writes.append(io["write_bytes"])
    if not stats:
        return None
    return Tree(
        processes=sum(1 for stat in stats if stat.state != "Z"),
        rss_bytes=sum(stat.rss_bytes for stat in stats),
        cpu_ns=sum(stat.cpu_ns for stat in stats),
        disk_read_bytes=sum(reads) if reads else None,
        disk_write_bytes=sum(writes) if writes else None,
    )


def read_pss(pids: Iterable[int], root: Path = ROOT) -> int | None:
    """Return the proportional memory of processes in bytes, shared pages counted once.

    None when one that lives may not be asked. Cost: the kernel walks all pages of each process
    (about 5 ms per GB), so this is not for every sample.
    """
    total: int | None = None
    for pid in pids:
        pss = key_values(read(f"{root}/proc/{pid}/smaps_rollup") or "").get("Pss")
        if pss is not None:
            total = (total or 0) + pss * 1024
            continue
        stat = parse_process_stat(read(f"{root}/proc/{pid}/stat") or "", 1, 1)
        if stat is not None and stat.state != "Z":
            return None
    return total


def _ask_psutil(pid: int) -> Tree | None:
    """Read the tree where there is no ``/proc`` (macOS)."""
    import psutil

    count = rss = cpu = 0
    try:
        top = psutil.Process(pid)
        processes = [top, *top.children(recursive=True)]
    except psutil.Error:
        return None
    for process in processes:
        try:
            with process.oneshot():
                rss += process.memory_info().rss
                times = process.cpu_times()
        except psutil.Error:
            continue
        count += 1
        cpu += int(sum(times[:4]) * 1e9)
    return Tree(count, rss, cpu, None, None) if count else None
