from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from hotlap.machine import cpu
from unit.machine.machines import Tree

STATUS = "Name:\tpython\nCpus_allowed:\t0f\nCpus_allowed_list:\t0-3\n"


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3\n", (0, 1, 2, 3)), ("0,2-3", (0, 2, 3)), ("5", (5,)), ("", ())]
)
def test_lists_of_cores(text: str, cpus: Any) -> None:
    assert cpu.parse_cpu_list(text) == cpus


def test_a_quota_below_the_affinity_below_the_visible_cores(tree: Tree) -> None:
    root = tree(
        {
            "sys/devices/system/cpu/online": "0-63\n",
            "proc/self/status": STATUS,
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/cpu.max": "250000 100000\n",
        }
    )
    cores = cpu.read_cores(root)
    assert (cores.visible, cores.affinity, cores.quota, cores.allowed) == (64, 4, 2.5, 2.5)
    assert cores.cpus == (0, 1, 2, 3)


def test_an_affinity_below_the_quota(tree: Tree) -> None:
    root = tree(
        {
            "sys/devices/system/cpu/online": "0-63\n",
            "proc/self/status": STATUS,
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/cpu.max": "800000 100000\n",
        }
    )
    cores = cpu.read_cores(root)
    assert (cores.quota, cores.allowed) == (8.0, 4.0)


def test_nothing_known(tree: Tree) -> None:
    cores = cpu.read_cores(tree({"empty": ""}))
    assert cores == cpu.Cores(None, None, None, None, None, None)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_a_real_process_on_one_core() -> None:
    before = cpu.read_cores()
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from hotlap.machine.cpu import read_cores; c = read_cores()\n"
        "print(c.visible, c.affinity, c.allowed, *c.cpus)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    visible, affinity, allowed, only = done.stdout.split()
    assert (int(visible), int(affinity)) == (before.visible, 1)
    assert float(allowed) == min(1.0, before.quota or 1.0)
    assert int(only) in os.sched_getaffinity(0)


def test_the_real_machine_agrees_with_python() -> None:
    cores = cpu.read_cores()
    assert cores.visible == os.cpu_count()
    if hasattr(os, "sched_getaffinity"):
        assert cores.cpus == tuple(sorted(os.sched_getaffinity(0)))


def test_physical_cores_are_pairs_of_socket_and_core() -> None:
    block = "processor\t: {}\nphysical id\t: {}\ncore id\t\t: {}\n"
    text = "\n".join(block.format(n, n // 4, n % 2) for n in range(8))
    assert cpu.parse_physical(text) == 4
    assert cpu.parse_physical("processor\t: 0\nBogoMIPS\t: 50\n") is None


@pytest.mark.parametrize(
    ("cpuinfo", "bf16", "avx2", "arm"),
    [
        ("model name : Xeon\nflags : fpu avx2 avx512f avx512_bf16 amx_bf16\n", 2, True, False),
        ("model name : i7\nflags : fpu avx2 hypervisor\n", 0, True, False),
        ("processor : 0\nFeatures : fp asimd sve bf16 svebf16\n", 2, False, True),
        ("processor : 0\nFeatures : fp asimd sve\n", 0, False, True),
    ],
)
def test_instructions(cpuinfo: str, bf16: int, avx2: bool, arm: bool) -> None:
    found = cpu.parse_processor(cpuinfo)
    assert found is not None
    assert (len(found.bf16), found.avx2, found.arm) == (bf16, avx2, arm)
    assert found.virtual == ("hypervisor" in cpuinfo)


def test_a_processor_without_flags_is_not_judged() -> None:
    assert cpu.parse_processor("processor : 0\n") is None


def test_busy_times_leave_out_idle_and_steal_and_keep_the_place_of_an_offline_core() -> None:
    text = (
        "cpu  999 0 0 0 0 0 0 0 0 0\n"
        "cpu0 1 2 3 100 50 4 5 6 1 0\n"
        "cpu2 10 0 0 0 0 0 0 0 10 0\n"
        "intr 1\ncpufreq 7\n"
    )
    found = cpu.parse_stat(text, 10)
    assert found is not None
    assert found.busy_ns == (150, None, 100)
    assert found.steal_ns == 60
    assert found.total_ns == 150 + 1000 + 500 + 60 + 100


def test_busy_times_of_an_old_kernel_with_four_columns() -> None:
    found = cpu.parse_stat("cpu 1 1 1 1\ncpu0 1 1 1 5\n", 1)
    assert found is not None
    assert (found.busy_ns, found.total_ns, found.steal_ns) == ((3,), 8, 0)


def test_busy_times_without_cores() -> None:
    assert cpu.parse_stat("intr 5\n", 1) is None


@pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="no /proc on this system")
def test_real_busy_times_grow_with_work() -> None:
    before = cpu.read_busy_times()
    total = 0
    while True:  # until the kernel's tick has seen us; bounded by the runner's own limit
        total += sum(range(20_000))
        after = cpu.read_busy_times()
        assert before is not None
        assert after is not None
        if sum(b or 0 for b in after.busy_ns) > sum(b or 0 for b in before.busy_ns):
            break
    assert after.total_ns > before.total_ns
