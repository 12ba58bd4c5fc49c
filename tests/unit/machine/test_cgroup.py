from __future__ import annotations

from typing import Any

import pytest

from hotlap.machine import cgroup
from hotlap.machine.mounts import parse_mountinfo
from unit.machine.machines import Tree

V1_MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
32 31 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 {top} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2_MOUNTS = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1_OWN = "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n"
V2_OWN = "0::/user.slice/job.scope\n"


def test_version_1_quota_of_the_own_group(tree: Tree) -> None:
    cpu = "sys/fs/cgroup/cpu,cpuacct/docker/abc/"
    root = tree(
        {
            "proc/self/cgroup": V1_OWN,
            "proc/self/mountinfo": V1_MOUNTS.format(top="/"),
            cpu + "cpu.cfs_quota_us": "150000\n",
            cpu + "cpu.cfs_period_us": "100000\n",
            cpu + "cpu.stat": "nr_periods 90\nnr_throttled 12\nthrottled_time 3400000\n",
        }
    )
    group = cgroup.locate("cpu", root)
    assert group is not None
    assert group.version == 1
    assert cgroup.cpu_quota(group) == 1.5
    assert cgroup.throttling(group) == cgroup.Throttling(90, 12, 3_400_000)


def test_version_1_in_a_container_that_mounts_only_its_own_group(tree: Tree) -> None:
    """The path in /proc is the host's, and the mount's top is that same path."""
    root = tree(
        {
            "proc/self/cgroup": V1_OWN,
            "proc/self/mountinfo": V1_MOUNTS.format(top="/docker/abc"),
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "700",
            "sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 300\n",
        }
    )
    cpu = cgroup.locate("cpu", root)
    memory = cgroup.locate("memory", root)
    assert cpu is not None
    assert memory is not None
    assert len(cpu.levels) == 1
    assert cgroup.cpu_quota(cpu) == 0.5
    assert cgroup.memory(memory) == cgroup.MemoryGroup(1 << 30, 700, 300)


def test_version_1_without_a_quota(tree: Tree) -> None:
    root = tree(
        {
            "proc/self/cgroup": "1:cpu:/\n",
            "proc/self/mountinfo": "1 1 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        }
    )
    group = cgroup.locate("cpu", root)
    assert group is not None
    assert cgroup.cpu_quota(group) is None
    assert cgroup.throttling(group) is None


def test_version_2_takes_the_smallest_of_all_levels(tree: Tree) -> None:
    base = "sys/fs/cgroup/"
    root = tree(
        {
            "proc/self/cgroup": V2_OWN,
            "proc/self/mountinfo": V2_MOUNTS,
            base + "user.slice/cpu.max": "200000 100000\n",
            base + "user.slice/cpu.stat": "usage_usec 5\nnr_periods 7\nnr_throttled 3\n"
            "throttled_usec 20\n",
            base + "user.slice/memory.max": "4096\n",
            base + "user.slice/memory.current": "3000\n",
            base + "user.slice/memory.stat": "inactive_file 1000\n",
            base + "user.slice/job.scope/cpu.max": "max 100000\n",
            base + "user.slice/job.scope/cpu.stat": "nr_periods 0\nnr_throttled 0\n"
            "throttled_usec 0\n",
            base + "user.slice/job.scope/memory.max": "max\n",
            base + "user.slice/job.scope/memory.current": "10\n",
        }
    )
    cpu = cgroup.locate("cpu", root)
    memory = cgroup.locate("memory", root)
    assert cpu is not None
    assert memory is not None
    assert cpu.version == 2
    assert [folder.name for folder in cpu.levels] == ["job.scope", "user.slice", "cgroup"]
    assert cgroup.cpu_quota(cpu) == 2.0
    # The counters are those of the level that sets the quota, in nanoseconds.
    assert cgroup.throttling(cpu) == cgroup.Throttling(7, 3, 20_000)
    assert cgroup.memory(memory) == cgroup.MemoryGroup(4096, 3000, 1000)


def test_another_process_is_found_by_its_own_membership(tree: Tree) -> None:
    base = "sys/fs/cgroup/"
    root = tree(
        {
            "proc/self/cgroup": "0::/\n",
            "proc/77/cgroup": "0::/job\n",
            "proc/self/mountinfo": V2_MOUNTS,
            base + "job/cpu.max": "30000 100000\n",
        }
    )
    group = cgroup.locate("cpu", root, 77)
    assert group is not None
    assert cgroup.cpu_quota(group) == 0.3


def test_a_group_outside_our_view_falls_back_to_the_mount_point(tree: Tree) -> None:
    root = tree(
        {
            "proc/self/cgroup": "0::/../other\n",
            "proc/self/mountinfo": V2_MOUNTS,
            "sys/fs/cgroup/cpu.max": "40000 100000\n",
        }
    )
    group = cgroup.locate("cpu", root)
    assert group is not None
    assert cgroup.cpu_quota(group) == 0.4


def test_no_control_groups(tree: Tree) -> None:
    assert cgroup.locate("cpu", tree({"proc/self/mountinfo": V2_MOUNTS})) is None
    assert cgroup.locate("cpu", tree({"proc/self/cgroup": "9:cpu:/\n"})) is None


@pytest.mark.parametrize(
    ("text", "cores"), [("max 100000", None), ("50000 100000", 0.5), ("", None), ("a b", None)]
)
def test_cpu_max(text: str, cores: Any) -> None:
    assert cgroup.parse_cpu_max(text) == cores


def test_the_largest_number_of_pages_is_no_memory_limit() -> None:
    assert cgroup.parse_memory_limit("9223372036854771712\n") is None
    assert cgroup.parse_memory_limit("max") is None
    assert cgroup.parse_memory_limit("0") == 0


def test_mount_points_with_blanks_and_optional_fields() -> None:
    (mount,) = parse_mountinfo(
        "36 35 98:0 /mnt\\0401 /data\\040set rw,noatime shared:1 master:2 - ext3 /dev/sda1 rw\n"
    )
    assert (mount.top, mount.point, mount.file_system) == ("/mnt 1", "/data set", "ext3")
    assert parse_mountinfo("nothing of the kind\n") == ()
