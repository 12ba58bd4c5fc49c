"""Machines that we do not have: a good one, one that tells nothing, and a Mac."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from hotlap.machine.cgroup import Throttling
from hotlap.machine.checks.surroundings import NO_PYTHON, Surroundings
from hotlap.machine.cpu import Cores, Processor
from hotlap.machine.disks import Disk
from hotlap.machine.gpu import NOT_INSTALLED
from hotlap.machine.interpreter import Python, Torch
from hotlap.machine.kernel import Facility
from hotlap.machine.memory import Memory, Space

Tree = Callable[[Mapping[str, str]], Path]
"""Writes files by their path under a new root, and returns the root."""

GIB = 1 << 30

DISK = Disk(
    path="/data",
    exists=True,
    mount_point="/",
    file_system="ext4",
    source="/dev/nvme0n1p2",
    kind="local",
    read_only=False,
    device="nvme0n1",
    rotational=False,
    virtual=False,
    total_bytes=1000 * GIB,
    free_bytes=500 * GIB,
)
TORCH = Torch(
    version="2.13.0+cu130",
    cuda="13.0",
    hip=None,
    cuda_available=True,
    devices=(("NVIDIA H200", (9, 0)),),
    mps_available=False,
    threads=8,
    interop_threads=8,
    mkl=True,
    openmp=True,
    onednn=True,
    cpu_capability="AVX512",
    triton=True,
    compiler=True,
)
GPU = {
    "index": 0,
    "name": "NVIDIA H200",
    "uuid": "GPU-1",
    "memory_total_bytes": 141 * GIB,
    "capability": [9, 0],
}
PROCESSOR = Processor("Xeon", ("amx_bf16",), True, True, False, False)
PYTHON = Python(
    "/env/bin/python", "3.12.1", "/env", True, {"torch": "2.13", "simplejpeg": "1"}, ".so"
)
GOOD = Surroundings(
    system="Linux",
    release="6.8",
    architecture="x86_64",
    container=None,
    cores=Cores(16, 8, 16, None, 16.0, tuple(range(16))),
    processor=PROCESSOR,
    throttling=Throttling(0, 0, 0),
    load=0.3,
    memory=Memory(64 * GIB, 60 * GIB, None, GIB, 60 * GIB, 0, 0),
    shm=Space(32 * GIB, 32 * GIB),
    paths=("/data",),
    disks=(DISK,),
    gpus=(GPU,),
    gpus_because=None,
    driver_models=("NVIDIA H200",),
    amd_driver=False,
    python=PYTHON,
    python_because=None,
    python_named=False,
    torch=TORCH,
    torch_because=None,
    hooks=("_hooks.so",),
    compiler="/usr/bin/g++",
    compiler_name="g++",
    allocators={"tcmalloc": "/usr/lib/libtcmalloc_minimal.so.4"},
    schedstat=Facility(True, "moves"),
    thread_io=Facility(True, "moves"),
    pressure=Facility(True, "cpu 0%"),
    namespaces=Facility(True, "work"),
    environ={},
)

NOTHING = replace(
    GOOD,
    container="docker",
    cores=Cores(None, None, None, None, None, None),
    processor=None,
    throttling=None,
    load=None,
    memory=Memory(None, None, None, None, None, None, None),
    shm=None,
    disks=None,
    gpus=(),
    gpus_because=NOT_INSTALLED,
    driver_models=(),
    python=None,
    python_because=NO_PYTHON,
    torch=None,
    torch_because=NO_PYTHON,
    hooks=(),
    compiler=None,
    allocators={},
    schedstat=Facility(False, "cannot be read"),
    thread_io=Facility(False, "cannot be read"),
    pressure=Facility(False, "cannot be read"),
    namespaces=Facility(None, "not tried"),
)
MAC = replace(NOTHING, system="Darwin", cores=Cores(8, None, None, None, 8.0, None))
