"""What stays the same during a run, as one JSON object that is recorded once per run."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hotlap.machine import allocators, cgroup, cpu, disks, gpu, kernel, memory
from hotlap.machine.pressure import read_pressure
from hotlap.machine.readfile import ROOT


def machine_facts(
    paths: Sequence[str | os.PathLike[str]] = (), root: Path = ROOT
) -> dict[str, Any]:
    """Return the facts of this machine; a value that is not known is None.

    paths: folders whose disks are described under ``disks``.

    ``host``, ``system``, ``kernel``, ``architecture``, ``container``, ``virtual``.
    ``cores_visible``, ``cores_physical``, ``cores_affinity``: whole cores; ``cpus``: their numbers;
    ``cores_quota``: what a control group grants, None also without a quota; ``cores_allowed``: min
    of affinity and quota. ``cgroup_version`` (1, 2). ``load``: of the last minute.
    ``cpu_model``, ``bf16`` (bool), ``bf16_flags``, ``avx2``, ``avx512``.
    ``memory_total_bytes``, ``memory_available_bytes``, ``memory_usable_bytes``,
    ``memory_limit_bytes`` (None also without a limit), ``swap_total_bytes``,
    ``swap_used_bytes``, ``shm_total_bytes``, ``shm_free_bytes``.
    ``pressure``: whether the kernel tells it. ``gpus``: see ``gpu.Gpus.facts``, ``gpus_absent``:
    why there are none, in words. ``cuda_visible_devices``: the variable. ``disks``: see
    ``disks.Disk``. ``allocators``: see ``allocators.find``. ``not_measured``:
    ``{"what", "because"}`` for each value that is not known.

    Never raises. Cost: tens of milliseconds, and the start of NVML where there are GPUs.
    """
    facts: dict[str, Any] = {
        "host": socket.gethostname(),
        "system": kernel.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "container": kernel.container(root),
        **_cores(root),
        **_processor(root),
        **_memory(root),
        "pressure": read_pressure(root) is not None,
        **_gpus(),
        "allocators": _allocators(),
        "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "disks": [asdict(disk) for disk in disks.examine_all(paths, root) or ()],
    }
    facts["not_measured"] = _not_measured(facts, bool(paths))
    return facts


def _allocators() -> dict[str, str]:
    prefix = os.environ.get("CONDA_PREFIX")
    return allocators.find((os.path.join(prefix, "lib"),) if prefix else ())


def _cores(root: Path) -> dict[str, Any]:
    cores = cpu.read_cores(root)
    group = cgroup.locate("cpu", root)
    return {
        "cores_visible": cores.visible,
        "cores_physical": cores.physical,
        "cores_affinity": cores.affinity,
        "cpus": None if cores.cpus is None else list(cores.cpus),
        "cores_quota": cores.quota,
        "cores_allowed": cores.allowed,
        "cgroup_version": group.version if group else None,
        "load": cpu.read_load(root),
    }


def _processor(root: Path) -> dict[str, Any]:
    found = cpu.read_processor(root)
    return {
        "cpu_model": found.model if found else None,
        "virtual": found.virtual if found else None,
        "bf16": bool(found.bf16) if found else None,
        "bf16_flags": list(found.bf16) if found else None,
        "avx2": found.avx2 if found else None,
        "avx512": found.avx512 if found else None,
    }


def _memory(root: Path) -> dict[str, Any]:
    found = memory.read_memory(root)
    shm = memory.read_shm(root)
    return {
        "memory_total_bytes": found.total_bytes,
        "memory_available_bytes": found.available_bytes,
        "memory_usable_bytes": found.usable_bytes,
        "memory_limit_bytes": found.limit_bytes,
        "swap_total_bytes": found.swap_total_bytes,
        "swap_used_bytes": found.swap_used_bytes,
        "shm_total_bytes": shm.total_bytes if shm else None,
        "shm_free_bytes": shm.free_bytes if shm else None,
    }


def _gpus() -> dict[str, Any]:
    gpus, because = gpu.connect()
    if gpus is None:
        return {"gpus": [], "gpus_absent": because}
    try:
        return {"gpus": gpus.facts(), "gpus_absent": None}
    finally:
        gpus.close()


_MAY_BE_NONE = frozenset(
    {"container", "cores_quota", "memory_limit_bytes", "gpus_absent", "cuda_visible_devices"}
)
"""None says something here: no container, no quota, no limit, GPUs, not set."""


def _not_measured(facts: dict[str, Any], asked_for_disks: bool) -> list[dict[str, str]]:
    """Return what is missing and why."""
    because = "the kernel of this machine does not tell"
    if facts["system"] != "Linux":
        because = f"it is read from /proc and /sys, which {facts['system']} does not have"
    missing = [
        {"what": name, "because": because}
        for name, value in facts.items()
        if value is None and name not in _MAY_BE_NONE
    ]
    if facts["cores_quota"] is None and facts["cgroup_version"] is None:
        missing.append({"what": "cores_quota", "because": "no control group of ours was found"})
    if asked_for_disks and not facts["disks"]:
        missing.append({"what": "disks", "because": because})
    return missing
