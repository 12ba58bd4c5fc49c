from __future__ import annotations

import os
from typing import Any

import pytest

from hotlap.machine import memory
from hotlap.machine.cgroup import MemoryGroup
from unit.machine.machines import Tree

MEMINFO = """\
MemTotal:       1000 kB
MemFree:         100 kB
MemAvailable:    600 kB
SwapTotal:       200 kB
SwapFree:        150 kB
HugePages_Total:   0
"""


def test_memory_under_a_limit(tree: Tree) -> None:
    group = "sys/fs/cgroup/memory/"
    root = tree(
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "4:memory:/\n",
            "proc/self/mountinfo": "1 1 0:3 / /sys/fs/cgroup/memory rw - cgroup c rw,memory\n",
            group + "memory.limit_in_bytes": str(500 * 1024),
            group + "memory.usage_in_bytes": str(450 * 1024),
            group + "memory.stat": f"cache 9\ntotal_inactive_file {300 * 1024}\n",
        }
    )
    found = memory.read_memory(root)
    assert found.total_bytes == 1000 * 1024
    assert found.limit_bytes == 500 * 1024
    assert found.usable_bytes == 350 * 1024
    assert (found.swap_total_bytes, found.swap_used_bytes) == (200 * 1024, 50 * 1024)


@pytest.mark.parametrize(
    ("available", "group", "usable"),
    [
        (600, None, 600),
        (600, MemoryGroup(None, 10, 0), 600),
        (600, MemoryGroup(1000, 100, 0), 600),
        (600, MemoryGroup(500, 450, 300), 350),
        (None, MemoryGroup(500, 700, 0), 0),
        (600, MemoryGroup(500, 100, None), 400),
    ],
)
def test_usable_memory(available: int | None, group: Any, usable: int) -> None:
    assert memory.usable(available, group) == usable


def test_nothing_known(tree: Tree) -> None:
    root = tree({"empty": ""})
    assert memory.read_memory(root) == memory.Memory(None, None, None, None, None, None, None)
    assert memory.read_shm(root) is None
    assert memory.read_swapping(root) is None
    assert memory.space(root / "not there") is None


def test_swap_traffic_in_bytes() -> None:
    text = "pgpgin 1\npswpin 3\npswpout 5\n"
    assert memory.parse_vmstat(text, 4096) == memory.Swapping(3 * 4096, 5 * 4096)
    assert memory.parse_vmstat("pgpgin 1\n", 4096) is None


def test_shared_memory_is_measured_where_the_folder_is(tree: Tree) -> None:
    root = tree({"dev/shm/x": "y"})
    found = memory.read_shm(root)
    there = os.statvfs(root)
    assert found is not None
    assert found.total_bytes == there.f_blocks * there.f_frsize
    assert 0 <= found.free_bytes <= found.total_bytes
