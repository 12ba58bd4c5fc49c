"""What doctor says of machines that we do not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotlap.machine.cgroup import Throttling
from hotlap.machine.checks import devices, environment, facilities, processor, room
from hotlap.machine.checks.catalogue import CATALOGUE, judge
from hotlap.machine.checks.check import STATES, cores, size
from hotlap.machine.checks.surroundings import Surroundings
from hotlap.machine.cpu import Cores
from hotlap.machine.gpu import NOT_INSTALLED
from hotlap.machine.interpreter import Python
from hotlap.machine.kernel import Facility
from hotlap.machine.memory import Memory, Space
from unit.machine.machines import (
    DISK,
    GIB,
    GOOD,
    GPU,
    MAC,
    NOTHING,
    PROCESSOR,
    PYTHON,
    TORCH,
)


def but(**changes: Any) -> Surroundings:
    return replace(GOOD, **changes)


def storage(**changes: Any) -> Any:
    (check,) = room.storage(but(disks=(replace(DISK, **changes),)))
    return check


def test_a_good_machine_gets_no_word_of_blame() -> None:
    checks = judge(GOOD)
    assert {check.state for check in checks} == {"good"}
    assert [check.fix for check in checks if check.fix] == []
    assert len({check.name for check in checks}) == len(CATALOGUE)


def test_every_line_says_something() -> None:
    for seen in (GOOD, NOTHING, MAC):
        for check in judge(seen):
            assert check.state in STATES
            assert check.seen
            assert check.consequence
            assert "None" not in f"{check.seen} {check.consequence} {check.fix or ''}"
            assert "\n" not in check.seen + check.consequence


def test_a_machine_that_tells_nothing_is_unknown_and_not_bad() -> None:
    states = {check.name: check.state for check in judge(NOTHING)}
    for name in ("cores", "other load", "vector instructions", "bf16 on the CPU", "memory"):
        assert states[name] == "unknown"
    assert states["python"] == "absent"
    assert states["torch"] == "unknown"
    assert states["GPUs"] == "absent"


def test_macos_is_explained() -> None:
    states = {check.name: check.state for check in judge(MAC)}
    assert states["system"] == "limited"
    for name in ("cores", "shared memory", "GPUs", "storage"):
        assert states[name] == "unknown"
    assert "8 cores" in processor.cores_usable(MAC).seen


@pytest.mark.parametrize(
    ("affinity", "quota", "allowed", "threads"), [(16, 2.5, 2.5, 2), (4, None, 4.0, 4)]
)
def test_fewer_cores_than_are_visible(
    affinity: int, quota: Any, allowed: float, threads: int
) -> None:
    found = but(cores=Cores(16, 8, affinity, quota, allowed, None))
    check = processor.cores_usable(found)
    assert check.state == "limited"
    assert "16 threads or workers" in check.consequence
    assert f"OMP_NUM_THREADS={threads}" in (check.fix or "")
    assert ("limits.cpu" in (check.fix or "")) == (quota is not None)


def test_a_quota_larger_than_the_machine_limits_nothing() -> None:
    found = but(cores=Cores(16, 8, 16, 32.0, 16.0, None))
    assert processor.cores_usable(found).state == "good"


def test_an_affinity_that_is_not_told_is_not_taken_for_all_cores() -> None:
    found = but(cores=Cores(16, 8, None, None, 16.0, None))
    assert processor.cores_usable(found).state == "unknown"


def test_throttling() -> None:
    quota = Cores(16, 8, 16, 2.0, 2.0, None)
    never = but(cores=quota, throttling=Throttling(50, 0, 0))
    often = but(cores=quota, throttling=Throttling(50, 20, 3_000_000_000))
    assert processor.throttling(never).state == "good"
    assert processor.throttling(often).state == "limited"
    assert "20 of 50 periods" in processor.throttling(often).seen
    assert "3.0 s" in processor.throttling(often).seen
    assert processor.throttling(but(cores=quota, throttling=None)).state == "unknown"


@pytest.mark.parametrize(
    ("load", "allowed", "state"),
    [(0.9, 16.0, "good"), (1.5, 16.0, "good"), (3.0, 16.0, "limited"), (3.0, 4.0, "good")],
)
def test_load_counts_when_it_takes_cores_of_ours(load: float, allowed: float, state: str) -> None:
    found = but(load=load, cores=Cores(16, 8, 16, None, allowed, None))
    assert processor.load(found).state == state


def test_instructions() -> None:
    def made(**changes: Any) -> Any:
        return but(processor=replace(PROCESSOR, **changes))

    assert processor.vectors(made(avx512=False)).state == "good"
    assert processor.vectors(made(avx512=False, avx2=False)).state == "limited"
    assert processor.vectors(made(avx512=False, avx2=False, arm=True)).state == "good"
    without = processor.bf16(made(bf16=()))
    assert without.state == "absent"
    assert "float32" in (without.fix or "")


def test_a_memory_limit() -> None:
    found = Memory(64 * GIB, 60 * GIB, 4 * GIB, GIB, 3 * GIB, 0, 0)
    check = room.memory(but(memory=found))
    assert check.state == "limited"
    assert "killed at 4.0 GiB" in check.consequence
    above = replace(found, limit_bytes=100 * GIB)
    assert room.memory(but(memory=above)).state == "good"


def test_swap() -> None:
    def made(total: Any, used: Any) -> Any:
        return but(memory=replace(GOOD.memory, swap_total_bytes=total, swap_used_bytes=used))

    assert room.swap(made(GIB, 0)).state == "good"
    assert room.swap(made(GIB, GIB // 2)).state == "limited"


def test_the_shared_memory_of_a_container() -> None:
    check = room.shared_memory(but(shm=Space(64 << 20, 64 << 20)))
    assert check.state == "limited"
    assert "room for 1 batch of 37 MiB" in check.consequence
    assert "16 workers with 2 ahead want 32" in check.consequence
    assert "--shm-size" in (check.fix or "")
    assert room.shared_memory(but(shm=None)).state == "absent"


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({}, "good", "solid state"),
        ({"rotational": True}, "limited", "spins"),
        ({"rotational": True, "virtual": True, "device": "vda"}, "unknown", "hypervisor"),
        ({"kind": "network", "file_system": "nfs4", "source": "s:/x"}, "limited", "nfs4 from s:/x"),
        ({"kind": "memory", "file_system": "tmpfs"}, "good", "in memory"),
        ({"kind": "layered", "file_system": "overlay"}, "unknown", "container"),
        ({"kind": "fuse", "file_system": "fuse.x"}, "unknown", "served by a program"),
        ({"kind": "host", "file_system": "9p"}, "limited", "host shares"),
        ({"device": None, "rotational": None}, "unknown", "not known"),
        ({"exists": False}, "absent", "no such path"),
        ({"free_bytes": 1 << 20}, "limited", "1.0 MiB free"),
        ({"read_only": True, "free_bytes": 0}, "good", "read-only"),
        ({"total_bytes": 0, "free_bytes": 0}, "good", "solid state"),
    ],
)
def test_storage(changes: Any, state: str, words: str) -> None:
    check = storage(**changes)
    assert check.state == state
    assert words in check.seen
    assert check.seen.startswith("/data: ")


def test_a_disk_without_a_name_of_a_virtual_one_under_a_hypervisor() -> None:
    """Clouds show their network disks as NVMe, so solid state is not believed there."""
    found = but(processor=replace(PROCESSOR, virtual=True))
    (check,) = room.storage(found)
    assert check.state == "unknown"


def test_gpus() -> None:
    def made(**changes: Any) -> Any:
        return devices.gpus(but(**changes))

    assert made().seen == "1 x NVIDIA H200 (141 GiB)"
    old = {**GPU, "capability": [7, 5], "name": "Tesla T4"}
    assert "bfloat16 is emulated" in made(gpus=(old,)).consequence
    assert made(gpus=(GPU, old)).fix == "export CUDA_DEVICE_ORDER=PCI_BUS_ID"
    unread = made(gpus=(), gpus_because=NOT_INSTALLED)
    assert (unread.state, unread.fix) == ("limited", "pip install 'hotlap[gpu]'")
    none = made(gpus=(), gpus_because=NOT_INSTALLED, driver_models=())
    assert none.state == "absent"
    assert "no NVIDIA driver is loaded" in none.seen
    amd = made(gpus=(), gpus_because=NOT_INSTALLED, driver_models=(), amd_driver=True)
    assert amd.state == "unknown"


def test_a_gpu_that_torch_does_not_use() -> None:
    built_without = replace(TORCH, cuda=None, cuda_available=False)
    check = environment.torch(but(torch=built_without))
    assert check.state == "limited"
    assert "this build has no CUDA" in check.consequence
    mismatch = environment.torch(but(torch=replace(TORCH, cuda_available=False)))
    assert "do not match" in mismatch.consequence
    alone = but(torch=built_without, gpus=(), driver_models=())
    assert environment.torch(alone).state == "good"


def test_torch_that_is_absent_broken_or_old() -> None:
    because = "ModuleNotFoundError: No module named 'torch'"
    bare = replace(PYTHON, packages={})
    absent = environment.torch(but(torch=None, torch_because=because, python=bare))
    assert absent.state == "absent"
    assert "/env/bin/python" in absent.seen
    broken = environment.torch(but(torch=None, torch_because="it was killed by SIGILL"))
    assert broken.state == "limited"
    assert "installed (2.13), but its import fails: it was killed by SIGILL" in broken.seen
    old = environment.torch(but(torch=replace(TORCH, version="2.3.1")))
    assert old.state == "limited"


@pytest.mark.parametrize(
    ("threads", "allowed", "environ", "state", "fix"),
    [
        (16, 2.5, {}, "limited", "export OMP_NUM_THREADS=2"),
        (8, 16.0, {}, "good", None),
        (1, 16.0, {"OMP_NUM_THREADS": "1"}, "limited", "unset OMP_NUM_THREADS"),
        (1, 1.0, {}, "good", None),
    ],
)
def test_threads(threads: int, allowed: float, environ: Any, state: str, fix: Any) -> None:
    found = but(
        torch=replace(TORCH, threads=threads),
        cores=Cores(16, 8, 16, None, allowed, None),
        environ=environ,
    )
    check = environment.threads(found)
    assert (check.state, check.fix) == (state, fix)


def test_what_compiling_lacks() -> None:
    found = but(
        compiler=None,
        python=replace(PYTHON, headers=False),
        torch=replace(TORCH, triton=False),
    )
    check = environment.compiler(found)
    assert check.state == "limited"
    assert check.seen == "no C++ compiler (g++), no Python.h, no triton"
    on_cpu = but(torch=replace(TORCH, triton=False, cuda_available=False))
    assert environment.compiler(on_cpu).state == "good"


def test_compiled_hooks_fit_one_python() -> None:
    fits = environment.hooks(but(hooks=("_hooks.a.so", "_hooks.b.so"), python=suffix(".b.so")))
    assert (fits.state, fits.fix) == ("good", None)
    for python in (suffix(".c.so"), suffix(None)):
        check = environment.hooks(but(hooks=("_hooks.a.so",), python=python))
        assert check.state == "absent"
        assert "more" in check.consequence
    assert environment.hooks(but(python=None)).state == "unknown"


def suffix(text: str | None) -> Python:
    return replace(PYTHON, suffix=text)


def test_allocators() -> None:
    assert environment.allocators(but(allocators={})).state == "absent"
    preloaded = but(environ={"LD_PRELOAD": "/x/libfoo.so:/x/libjemalloc.so.2"}, allocators={})
    assert environment.allocators(preloaded).seen == "libjemalloc.so.2 is in LD_PRELOAD"


@pytest.mark.parametrize(
    ("packages", "state"),
    [
        ({}, "absent"),
        ({"pillow": "11"}, "limited"),
        ({"pillow": "11", "opencv-python-headless": "4"}, "good"),
        ({"soundfile": "1"}, "good"),
    ],
)
def test_decoders(packages: Any, state: str) -> None:
    found = but(python=replace(PYTHON, packages=packages))
    assert environment.decoders(found).state == state


def test_python() -> None:
    assert "--python names it" in environment.python(but(python_named=True)).consequence
    old = environment.python(but(python=replace(PYTHON, version="3.9.18")))
    assert old.state == "limited"
    silent = environment.python(but(python=None, python_because="/x: it was killed by SIGSEGV"))
    assert silent.state == "unknown"


def test_facilities_that_lack() -> None:
    missing = Facility(False, "cannot be read")
    check = facilities.run_queue(but(schedstat=missing))
    assert check.state == "absent"
    assert "upper bound" in check.consequence
    assert facilities.pressure(but(pressure=missing)).fix is not None
    assert facilities.thread_io(but(thread_io=missing)).state == "absent"
    assert facilities.namespaces(but(namespaces=Facility(None, "?"))).state == "unknown"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (64 << 20, "64 MiB"),
        (3 << 29, "1.5 GiB"),
        (1000 << 20, "1.0 GiB"),
    ],
)
def test_sizes(number: int, words: str) -> None:
    assert size(number) == words


def test_numbers_of_cores() -> None:
    assert [cores(n) for n in (1, 1.5, 10, 0.25)] == [
        "1 core",
        "1.5 cores",
        "10 cores",
        "0.25 cores",
    ]
