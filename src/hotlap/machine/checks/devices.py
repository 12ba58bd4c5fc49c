"""Checks of GPUs."""

from __future__ import annotations

from collections import Counter
from typing import Final

from hotlap.machine.checks.check import Check, size
from hotlap.machine.checks.surroundings import Surroundings
from hotlap.machine.gpu import NOT_INSTALLED

_BF16_CAPABILITY: Final = 8
"""GPUs of compute capability 8.0 (Ampere) and newer have bf16 arithmetic."""


def gpus(seen: Surroundings) -> Check:
    """GPUs that a training may use, and whether they can be watched."""
    if seen.gpus:
        return _present(seen)
    name = "GPUs"
    because = seen.gpus_because or "no reason known"
    if seen.driver_models:
        return Check(
            name,
            "limited",
            f"the driver lists {_count(list(seen.driver_models))}, but {because}",
            "GPU use, memory, clocks and power cannot be sampled",
            "pip install 'hotlap[gpu]'" if because == NOT_INSTALLED else None,
        )
    if seen.amd_driver:
        words = "the driver of AMD GPUs is loaded"
        return Check(name, "unknown", words, "hotlap samples NVIDIA GPUs only")
    if seen.system == "Darwin":
        metal = seen.torch is not None and bool(seen.torch.mps_available)
        words = "Metal can be used by torch" if metal else "no NVIDIA GPU; Metal not known"
        return Check(name, "unknown", words, "hotlap samples NVIDIA GPUs only")
    if because == NOT_INSTALLED:
        because = "no NVIDIA driver is loaded (and nvidia-ml-py is not installed)"
    return Check(name, "absent", because, "trainings run on the CPU here")


def _count(names: list[str]) -> str:
    return ", ".join(f"{number} x {name}" for name, number in Counter(names).items())


def _present(seen: Surroundings) -> Check:
    name = "GPUs"
    words = _count(
        [
            f"{gpu['name'] or 'GPU without a name'}"
            + (f" ({size(gpu['memory_total_bytes'])})" if gpu["memory_total_bytes"] else "")
            for gpu in seen.gpus
        ]
    )
    setting = seen.environ.get("CUDA_VISIBLE_DEVICES")
    if setting is not None:
        words += f", by CUDA_VISIBLE_DEVICES={setting}"
    mixed = len({gpu["name"] for gpu in seen.gpus}) > 1
    if mixed and seen.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        return Check(
            name,
            "limited",
            words,
            "the models differ, so torch may number the GPUs otherwise than nvidia-smi and hotlap",
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
        )
    capabilities = [gpu["capability"] for gpu in seen.gpus if gpu["capability"]]
    if any(capability[0] < _BF16_CAPABILITY for capability in capabilities):
        return Check(
            name,
            "limited",
            words,
            "older than Ampere: bfloat16 is emulated on it, and slow",
            "use float16 with a gradient scaler for low precision",
        )
    return Check(name, "good", words, "GPU use, memory, clocks and power are sampled")
