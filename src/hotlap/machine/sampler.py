"""What changes during a run: one flat JSON object per call.

Keys (None: not measured). Counters are cumulative since boot, or since the processes began, and a
reader takes differences; the rest are values of the moment.

=========================  ====================================================================
key                        meaning
=========================  ====================================================================
``at_ns``                  ``time.monotonic_ns()`` when the sample was begun
``cores_busy_ns``          counter, list by core number (None: core offline): user, nice, system,
                           irq, softirq; share of a core = difference / difference of ``at_ns``
``cores_total_ns``         counter: all cores, idle and steal included (the kernel lets its iowait
                           part shrink at times)
``steal_ns``               counter: all cores, time that the hypervisor gave to others
``load``                   load average of the last minute
``tree_processes``         living processes from ``root_pid`` down; None: it is gone
``tree_rss_bytes``         their resident memory; an upper bound above one process, since forked
                           processes share pages
``tree_pss_bytes``         the same with shared pages counted once; in few samples only (it is
                           costly: read in at most 1/500 of the time), None in the others
``tree_cpu_ns``            counter: CPU time of the tree, with children that ended and were
                           waited for; falls when a process that nobody waits for ends
``tree_disk_read_bytes``   counter: bytes that the tree read from storage, not from the page
                           cache; same caution. Not of network file systems without page cache
``tree_disk_write_bytes``  counter: bytes that it sent towards storage
``disk_read_bytes``        counter: all real disks of the machine, each byte once
``disk_write_bytes``       counter
``net_bytes``              counter: received and sent, without loopback; RDMA is not in it
``net_received_bytes``     counter
``net_sent_bytes``         counter
``psi``                    counters ``cpu_some_ns``, ``cpu_full_ns``, ``io_some_ns``,
                           ``io_full_ns``, ``memory_some_ns``, ``memory_full_ns`` of the whole
                           machine; None: the kernel has pressure stall information off
``periods``                counter: accounting periods of the CPU quota in which we wanted to run
``throttled_periods``      counter: those in which we were stopped
``throttled_ns``           counter: time stopped, summed over cores
``swap_in_bytes``          counter: of the machine
``swap_out_bytes``         counter
``mem_available_bytes``    what programs can still take, the control group's limit not considered
``cgroup_memory_bytes``    use of the control group that has the limit, page cache included
``shm_free_bytes``         free in ``/dev/shm``
``paths``                  list, per path given: ``path``, ``free_bytes`` (None on a network, where
                           asking can hang), ``read_bytes`` and ``write_bytes`` (counters of the
                           disk behind it, None where none is known)
``gpus``                   list, see ``gpu.Gpus.sample``; empty without GPUs
=========================  ====================================================================
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hotlap.machine import cgroup, cpu, disks, gpu, memory, network, processes
from hotlap.machine.pressure import read_pressure
from hotlap.machine.readfile import ROOT

_PSS_REST: Final = 500
"""The proportional memory is read again after this many times what its last reading took."""


class Sampler:
    """Reads the machine and a tree of processes. Cost: 1 to 5 ms a sample, GPUs not included.

    root_pid: the process whose tree is read. paths: folders whose disks are read.
    """

    def __init__(
        self, root_pid: int, paths: Sequence[str | os.PathLike[str]] = (), root: Path = ROOT
    ) -> None:
        self._pid = root_pid
        self._root = root
        self._disks = disks.examine_all(paths, root) or ()
        self._cpu_group = cgroup.locate("cpu", root, root_pid)
        self._memory_group = cgroup.locate("memory", root, root_pid)
        self._gpus, self.gpus_absent = gpu.connect()
        """Why there are no GPUs in the samples, in words; None when there are."""
        self._pss_after_ns = 0

    def sample(self) -> dict[str, Any]:
        """Return one sample; keys as at the top of this module. Never raises because something,
        a process for example, is not there."""
        at_ns = time.monotonic_ns()
        sample: dict[str, Any] = {"at_ns": at_ns}
        sample.update(self._cores())
        sample.update(self._tree(at_ns))
        sample.update(self._traffic())
        sample.update(self._memory())
        sample["gpus"] = []
        if self._gpus is not None:
            own = processes.members(self._pid, self._root)
            sample["gpus"] = self._gpus.sample(frozenset(own))
        return sample

    def close(self) -> None:
        """Give back the connection to the GPUs."""
        if self._gpus is not None:
            self._gpus.close()
            self._gpus = None

    def _cores(self) -> dict[str, Any]:
        times = cpu.read_busy_times(self._root)
        stopped = cgroup.throttling(self._cpu_group) if self._cpu_group else None
        stalls = read_pressure(self._root)
        return {
            "cores_busy_ns": None if times is None else list(times.busy_ns),
            "cores_total_ns": None if times is None else times.total_ns,
            "steal_ns": None if times is None else times.steal_ns,
            "load": cpu.read_load(self._root),
            "periods": None if stopped is None else stopped.periods,
            "throttled_periods": None if stopped is None else stopped.throttled_periods,
            "throttled_ns": None if stopped is None else stopped.throttled_ns,
            "psi": None
            if stalls is None
            else {f"{name}_ns": stall.total_ns for name, stall in stalls.items()},
        }

    def _tree(self, at_ns: int) -> dict[str, Any]:
        tree = processes.read_tree(self._pid, self._root)
        return {
            "tree_processes": tree.processes if tree else None,
            "tree_rss_bytes": tree.rss_bytes if tree else None,
            "tree_pss_bytes": self._pss(at_ns) if tree else None,
            "tree_cpu_ns": tree.cpu_ns if tree else None,
            "tree_disk_read_bytes": tree.disk_read_bytes if tree else None,
            "tree_disk_write_bytes": tree.disk_write_bytes if tree else None,
        }

    def _pss(self, at_ns: int) -> int | None:
        if at_ns < self._pss_after_ns:
            return None
        begin = time.monotonic_ns()
        found = processes.read_pss(processes.members(self._pid, self._root), self._root)
        end = time.monotonic_ns()
        self._pss_after_ns = end + _PSS_REST * (end - begin)
        return found

    def _traffic(self) -> dict[str, Any]:
        by_disk = disks.read_disks(self._root)
        disk = disks.total(by_disk)
        net = network.read_traffic(self._root)
        return {
            "disk_read_bytes": disk.read_bytes if disk else None,
            "disk_write_bytes": disk.write_bytes if disk else None,
            "net_bytes": net.received_bytes + net.sent_bytes if net else None,
            "net_received_bytes": net.received_bytes if net else None,
            "net_sent_bytes": net.sent_bytes if net else None,
            "paths": [self._path(disk, by_disk or {}) for disk in self._disks],
        }

    def _path(self, disk: disks.Disk, by_disk: dict[str, disks.Traffic]) -> dict[str, Any]:
        asks = disk.kind in ("local", "memory", "layered")
        free = memory.space(self._root / disk.mount_point.lstrip("/")) if asks else None
        traffic = by_disk.get(disk.device) if disk.device else None
        return {
            "path": disk.path,
            "free_bytes": free.free_bytes if free else None,
            "read_bytes": traffic.read_bytes if traffic else None,
            "write_bytes": traffic.write_bytes if traffic else None,
        }

    def _memory(self) -> dict[str, Any]:
        swapping = memory.read_swapping(self._root)
        group = cgroup.memory(self._memory_group) if self._memory_group else None
        shm = memory.read_shm(self._root)
        return {
            "mem_available_bytes": memory.read_available(self._root),
            "cgroup_memory_bytes": group.usage_bytes if group else None,
            "shm_free_bytes": shm.free_bytes if shm else None,
            "swap_in_bytes": swapping.in_bytes if swapping else None,
            "swap_out_bytes": swapping.out_bytes if swapping else None,
        }
