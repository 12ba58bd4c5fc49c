"""NVIDIA GPUs by NVML, those that ``CUDA_VISIBLE_DEVICES`` lets a program use.

NVML counts in the order of the PCI bus, CUDA by default the fastest first: on machines with GPUs of
different models an index may name another one, unless ``CUDA_DEVICE_ORDER=PCI_BUS_ID``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

from hotlap.machine.readfile import ROOT, read

NOT_INSTALLED: Final = "nvidia-ml-py is not installed: pip install 'hotlap[gpu]'"

_DRIVER_SIGNS: Final = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
"""One of these is there where an NVIDIA driver is loaded (the last one inside WSL)."""

_THROTTLE_REASONS: Final = {
    0x0000000000000002: "application clocks",
    0x0000000000000004: "software power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000010: "sync boost",
    0x0000000000000020: "software thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "hardware power brake",
    0x0000000000000100: "display clocks",
}
"""Bits of nvml.h. Bit 0 (idle) is left out: an idle GPU is not being held back."""


def visible(uuids: list[str], setting: str | None) -> list[int]:
    """Return the places in ``uuids`` that ``CUDA_VISIBLE_DEVICES`` leaves, in its order.

    uuids: of all GPUs that can be opened, in NVML's order. setting: the variable's value, None when
    it is not set. As in CUDA, an entry may be an index or the beginning of a UUID, and the first
    bad entry ends the list. A MIG slice counts as nothing here: see ``_mig_slice``.
    """
    if setting is None:
        return list(range(len(uuids)))
    chosen: list[int] = []
    for entry in (part.strip() for part in setting.split(",")):
        if entry.isdigit() and int(entry) < len(uuids):
            index = int(entry)
        elif entry.startswith("GPU-"):
            matches = [i for i, uuid in enumerate(uuids) if uuid.startswith(entry)]
            if len(matches) != 1:
                break
            index = matches[0]
        else:
            break
        if index in chosen:
            return []
        chosen.append(index)
    return chosen


def throttle_words(bits: int) -> list[str]:
    """Return the reasons for which a GPU's clocks are held back, in words; idle is none."""
    return [word for bit, word in _THROTTLE_REASONS.items() if bits & bit]


class Gpus:
    """An open connection to NVML. One sample costs some milliseconds per GPU at worst."""

    def __init__(self, library: Any, handles: list[tuple[int, Any]]) -> None:
        self._library = library
        self._handles = handles

    def facts(self) -> list[dict[str, Any]]:
        """Return per GPU ``index, name, uuid, memory_total_bytes, pcie_generation_max,
        pcie_width_max, capability`` (``[9, 0]``); None where the driver does not tell."""
        return [self._facts(index, handle) for index, handle in self._handles]

    def sample(self, own: Collection[int] = ()) -> list[dict[str, Any]]:
        """Return per GPU, None where the driver does not tell:

        ``index``; ``busy_share`` and ``memory_busy_share`` (0-1, of the driver's last period, up to
        1 s: some kernel ran, not how much of the GPU it used); ``memory_used_bytes``,
        ``memory_total_bytes``; ``sm_clock_hz``, ``memory_clock_hz``; ``power_mw``;
        ``temperature_c``; ``throttled_by`` (words); ``pcie_generation``, ``pcie_width``;
        ``others``: how many processes beside ours compute on it.

        own: numbers of our processes. In a container the driver may count processes by other
        numbers: where it names none of ours, nothing is said of others.
        """
        return [
            {**self._sample(index, handle), "others": self._others(handle, own)}
            for index, handle in self._handles
        ]

    def _others(self, handle: Any, own: Collection[int]) -> int | None:
        found = self._ask("nvmlDeviceGetComputeRunningProcesses", handle)
        if found is None:
            return None
        pids = {int(one.pid) for one in found}
        return len(pids.difference(own)) if pids.intersection(own) else None

    def close(self) -> None:
        """End the connection; the object is of no use after."""
        self._ask("nvmlShutdown")
        self._handles = []

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Call NVML; None when this GPU, driver or Python package does not know the question."""
        function: Callable[..., Any] | None = getattr(self._library, name, None)
        if function is None:
            return None
        try:
            return function(*arguments)
        except (self._library.NVMLError, TypeError):
            return None

    def _facts(self, index: int, handle: Any) -> dict[str, Any]:
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        capability = self._ask("nvmlDeviceGetCudaComputeCapability", handle)
        return {
            "index": index,
            "name": _text(self._ask("nvmlDeviceGetName", handle)),
            "uuid": _text(self._ask("nvmlDeviceGetUUID", handle)),
            "memory_total_bytes": None if memory is None else int(memory.total),
            "pcie_generation_max": self._ask("nvmlDeviceGetMaxPcieLinkGeneration", handle),
            "pcie_width_max": self._ask("nvmlDeviceGetMaxPcieLinkWidth", handle),
            "capability": None if capability is None else list(capability),
        }

    def _sample(self, index: int, handle: Any) -> dict[str, Any]:
        busy = self._ask("nvmlDeviceGetUtilizationRates", handle)
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if bits is None:
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return {
            "index": index,
            "busy_share": None if busy is None else busy.gpu / 100,
            "memory_busy_share": None if busy is None else busy.memory / 100,
            "memory_used_bytes": None if memory is None else int(memory.used),
            "memory_total_bytes": None if memory is None else int(memory.total),
            "sm_clock_hz": self._clock(handle, "NVML_CLOCK_SM"),
            "memory_clock_hz": self._clock(handle, "NVML_CLOCK_MEM"),
            "power_mw": self._ask("nvmlDeviceGetPowerUsage", handle),
            "temperature_c": self._temperature(handle),
            "throttled_by": None if bits is None else throttle_words(int(bits)),
            "pcie_generation": self._ask("nvmlDeviceGetCurrPcieLinkGeneration", handle),
            "pcie_width": self._ask("nvmlDeviceGetCurrPcieLinkWidth", handle),
        }

    def _clock(self, handle: Any, kind: str) -> int | None:
        which = getattr(self._library, kind, None)
        if which is None:
            return None
        megahertz = self._ask("nvmlDeviceGetClockInfo", handle, which)
        return None if megahertz is None else int(megahertz) * 1_000_000

    def _temperature(self, handle: Any) -> int | None:
        sensor = getattr(self._library, "NVML_TEMPERATURE_GPU", 0)
        degrees = self._ask("nvmlDeviceGetTemperature", handle, sensor)
        return None if degrees is None else int(degrees)


def _text(value: Any) -> str | None:
    """Return a string; older packages give bytes."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return None if value is None else str(value)


def connect(environ: Mapping[str, str] = os.environ) -> tuple[Gpus | None, str | None]:
    """Open NVML and return ``(gpus, None)``, or ``(None, why not)`` in words."""
    try:
        import pynvml
    except ImportError:
        if Path("/proc").is_dir() and not any(Path(sign).exists() for sign in _DRIVER_SIGNS):
            return None, "no NVIDIA driver is loaded"
        return None, NOT_INSTALLED
    library: Any = pynvml
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        return None, _no_driver(library, error)
    gpus, because = _visible_gpus(library, environ.get("CUDA_VISIBLE_DEVICES"))
    if gpus:
        return Gpus(library, gpus), None
    try:
        library.nvmlShutdown()
    except library.NVMLError as error:
        return None, f"{because} ({error})"
    return None, because


def _visible_gpus(library: Any, setting: str | None) -> tuple[list[tuple[int, Any]], str | None]:
    """Return NVML index and handle of each GPU that a program may use; if none, why not.

    NVML counts GPUs that it then refuses to open (a container's neighbours', a lost one). CUDA
    does not count them, so indices in ``CUDA_VISIBLE_DEVICES`` are among the others.
    """
    try:
        count = library.nvmlDeviceGetCount()
    except library.NVMLError as error:
        return [], f"the NVIDIA driver does not answer: {error}"
    found: list[tuple[int, Any]] = []
    uuids: list[str] = []
    refused: Exception | None = None
    for index in range(count):
        try:
            handle = library.nvmlDeviceGetHandleByIndex(index)
            uuids.append(_text(library.nvmlDeviceGetUUID(handle)) or "")
            found.append((index, handle))
        except library.NVMLError as error:
            refused = error
    if refused is not None and not found:
        return [], f"the NVIDIA driver opens none of its {count} GPUs: {refused}"
    if not found:
        return [], "the NVIDIA driver is there, but it shows no GPU"
    if setting is not None and setting.strip().startswith("MIG-"):
        return _mig_slice(library, setting.split(",")[0].strip())
    chosen = visible(uuids, setting)
    if not chosen:
        return [], f"CUDA_VISIBLE_DEVICES={setting!r} hides all {len(found)} GPUs"
    return [found[place] for place in chosen], None


def _mig_slice(library: Any, uuid: str) -> tuple[list[tuple[int, Any]], str | None]:
    """Return a slice of a GPU: CUDA uses the first one named, and never more.

    NVML tells a slice's memory; utilisation, clocks and power belong to the GPU as a whole.
    """
    try:
        handle = library.nvmlDeviceGetHandleByUUID(uuid)
        whole = library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
        return [(int(library.nvmlDeviceGetIndex(whole)), handle)], None
    except (library.NVMLError, AttributeError, TypeError) as error:
        return [], f"NVML does not find the MIG slice that CUDA_VISIBLE_DEVICES names: {error}"


def _no_driver(library: Any, error: Exception) -> str:
    missing = getattr(library, "NVMLError_LibraryNotFound", None)
    if missing is not None and isinstance(error, missing):
        return "no NVIDIA driver: NVML library not found"
    unloaded = getattr(library, "NVMLError_DriverNotLoaded", None)
    if unloaded is not None and isinstance(error, unloaded):
        return "the NVIDIA driver is installed but not loaded"
    return f"NVML does not start: {error}"


def driver_models(root: Path = ROOT) -> list[str]:
    """Return the models that a loaded NVIDIA driver lists in ``/proc``, without NVML."""
    folder = root / "proc/driver/nvidia/gpus"
    models = []
    for card in sorted(folder.glob("*/information")):
        for line in (read(card) or "").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "Model":
                models.append(value.strip())
    return models


def has_amd_driver(root: Path = ROOT) -> bool:
    """Return whether the compute driver of AMD GPUs is loaded."""
    return (root / "dev/kfd").exists()
