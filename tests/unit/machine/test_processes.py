from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from hotlap.machine import processes
from hotlap.machine.cpu import tick_ns
from hotlap.machine.memory import page_bytes
from unit.machine.machines import Tree

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self"), reason="no /proc here")


def stat_line(parent: int, ticks: tuple[int, int, int, int], pages: int, state: str = "S") -> str:
    head = f"1 (a name) with) brackets) {state} {parent} 1 1 0 -1 0 0 0 0 0"
    return f"{head} {' '.join(map(str, ticks))} 20 0 1 0 5 1000 {pages} 99 1\n"


def test_a_name_with_brackets_and_the_time_of_ended_children() -> None:
    found = processes.parse_process_stat(stat_line(7, (1, 2, 3, 4), 5), 10, 4096)
    assert found == processes.ProcessStat(7, "S", 100, 5 * 4096)
    assert processes.parse_process_stat("1 (cut) S 1", 1, 1) is None
    assert processes.parse_process_stat("", 1, 1) is None


def family(tree: Tree, children: bool) -> Any:
    files = {
        "proc/10/stat": stat_line(1, (1, 0, 0, 0), 3),
        "proc/11/stat": stat_line(10, (0, 2, 0, 0), 4),
        "proc/12/stat": stat_line(11, (0, 0, 0, 5), 6, "Z"),
        "proc/90/stat": stat_line(1, (1000, 0, 0, 0), 1000),
        "proc/10/io": "rchar: 1\nread_bytes: 100\nwrite_bytes: 7\n",
        "proc/11/io": "rchar: 1\nread_bytes: 10\nwrite_bytes: 1\n",
        "proc/10/task/10/comm": "",
        "proc/11/task/11/comm": "",
        "proc/12/task/12/comm": "",
    }
    if children:
        # 13 has vanished since the kernel listed it.
        files["proc/10/task/10/children"] = ""
        files["proc/10/task/15/children"] = "11 13 "
        files["proc/11/task/11/children"] = "12 "
        files["proc/12/task/12/children"] = ""
    return tree(files)


@pytest.mark.parametrize("children", [True, False], ids=["listed by the kernel", "by a scan"])
def test_a_tree(tree: Tree, children: bool) -> None:
    found = processes.read_tree(10, family(tree, children))
    assert found == processes.Tree(
        processes=2,
        rss_bytes=13 * page_bytes(),
        cpu_ns=8 * tick_ns(),
        disk_read_bytes=110,
        disk_write_bytes=8,
    )


def test_a_process_that_is_gone(tree: Tree) -> None:
    assert processes.read_tree(55, family(tree, True)) is None


def test_shared_memory_counted_once_needs_every_living_process(tree: Tree) -> None:
    root = family(tree, True)
    (root / "proc/10/smaps_rollup").write_text("Rss: 9 kB\nPss:   3 kB\n")
    assert processes.read_pss([10, 12, 13], root) == 3 * 1024
    assert processes.read_pss([10, 11], root) is None
    assert processes.read_pss([13], root) is None


@needs_proc
def test_real_children_are_seen_and_forgotten() -> None:
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        with_child = processes.read_tree(os.getpid())
        alone = processes.read_tree(child.pid)
        pss = processes.read_pss([child.pid])
        child.stdin.close()
    after = processes.read_tree(os.getpid())
    gone = processes.read_tree(child.pid)
    assert with_child is not None
    assert alone is not None
    assert after is not None
    assert with_child.processes == after.processes + 1
    assert alone.processes == 1
    assert 0 < alone.rss_bytes < with_child.rss_bytes
    assert pss is None or pss > 0
    assert gone is None
    # The child's time has gone over to us when we waited for it.
    assert after.cpu_ns >= alone.cpu_ns


def test_psutil_gives_the_same_tree_where_there_is_no_proc() -> None:
    found = processes._ask_psutil(os.getpid())
    assert found is not None
    assert found.processes >= 1
    assert found.rss_bytes > 0
    assert found.cpu_ns > 0
    assert found.disk_read_bytes is None


def test_psutil_of_a_process_that_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert processes._ask_psutil(child.pid) is None
