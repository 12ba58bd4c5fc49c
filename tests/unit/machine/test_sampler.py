from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hotlap.machine import facts, gpu, sampler
from unit.machine.machines import Tree

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")


@pytest.fixture(autouse=True)
def no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)


def documented_keys() -> set[str]:
    table = (sampler.__doc__ or "").split("===\n", 3)
    return set(re.findall(r"^``(\w+)``", "\n".join(table), flags=re.MULTILINE))


def test_every_key_stands_at_the_top_of_the_module() -> None:
    assert set(sampler.Sampler(os.getpid()).sample()) == documented_keys()


def test_a_machine_that_tells_nothing(tree: Tree) -> None:
    sample = sampler.Sampler(1, ["/data"], tree({"empty": ""})).sample()
    known = {name for name, value in sample.items() if value is not None}
    assert known == {"at_ns", "paths", "gpus"}
    assert (sample["paths"], sample["gpus"]) == ([], [])


@on_linux
def test_a_sample_of_this_machine(tmp_path: Path) -> None:
    source = sampler.Sampler(os.getpid(), [tmp_path])
    begin = time.monotonic_ns()
    sample = source.sample()
    assert begin <= sample["at_ns"] <= time.monotonic_ns()
    assert json.loads(json.dumps(sample)) == sample
    assert sample["tree_processes"] >= 1
    assert sample["tree_rss_bytes"] > 1 << 20
    assert sample["cores_total_ns"] >= sum(busy or 0 for busy in sample["cores_busy_ns"])
    assert [path["path"] for path in sample["paths"]] == [str(tmp_path)]
    assert source.gpus_absent is not None
    later = source.sample()
    for name in ("at_ns", "tree_cpu_ns", "net_bytes"):
        assert later[name] >= sample[name]


@on_linux
def test_shared_memory_counted_once_is_read_seldom() -> None:
    source = sampler.Sampler(os.getpid())
    first, second = source.sample(), source.sample()
    assert second["tree_pss_bytes"] is None
    if first["tree_pss_bytes"] is None:
        pytest.skip("this kernel does not let smaps_rollup be read")
    assert first["tree_pss_bytes"] > 0


def test_the_process_ends_between_two_samples() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        source = sampler.Sampler(child.pid)
        assert source.sample()["tree_processes"] == 1
        child.kill()
        # Not waited for yet: a zombie, whose time is known but which is none any more.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        dead = source.sample()
        child.wait()
        gone = source.sample()
    assert dead["tree_processes"] in (0, None)
    assert gone["tree_processes"] is None
    assert gone["tree_rss_bytes"] is None
    assert gone["at_ns"] > dead["at_ns"]


def test_processes_that_come_and_go_while_sampling() -> None:
    """Forks that end at once: whatever vanishes between two reads must not raise."""
    code = (
        "import os, time\n"
        "end = time.monotonic() + 1.5\n"
        "while time.monotonic() < end:\n"
        "    pid = os.fork()\n"
        "    os._exit(0) if pid == 0 else os.waitpid(pid, 0)\n"
    )
    counts = []
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        source = sampler.Sampler(child.pid)
        while child.poll() is None:
            counts.append(source.sample()["tree_processes"])
    assert {count for count in counts if count} <= {1, 2}
    assert len(counts) > 10


class Gpus:
    def sample(self, _own: frozenset[int]) -> list[dict[str, Any]]:
        return [{"index": 0}]

    def close(self) -> None:
        self.closed = True


def test_gpus_are_in_the_sample_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = Gpus()
    monkeypatch.setattr(gpu, "connect", lambda: (gpus, None))
    source = sampler.Sampler(os.getpid())
    assert source.sample()["gpus"] == [{"index": 0}]
    source.close()
    assert gpus.closed
    assert source.sample()["gpus"] == []


def test_facts_of_this_machine(tmp_path: Path) -> None:
    found = facts.machine_facts([tmp_path])
    assert json.loads(json.dumps(found)) == found
    assert found["system"]
    assert found["gpus"] == []
    assert found["gpus_absent"]
    missing = {entry["what"] for entry in found["not_measured"]}
    unsaid = {name for name, value in found.items() if value is None}
    assert unsaid - missing <= facts._MAY_BE_NONE


def test_facts_of_a_machine_that_tells_nothing(tree: Tree) -> None:
    found = facts.machine_facts(["/data"], tree({"empty": ""}))
    because = {entry["what"]: entry["because"] for entry in found["not_measured"]}
    assert {"cores_allowed", "cores_quota", "memory_total_bytes", "bf16", "disks"} <= set(because)
    assert all(because.values())
    assert found["pressure"] is False
