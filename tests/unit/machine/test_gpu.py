"""NVML, by a stand-in for the ``pynvml`` package at its boundary."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotlap.machine import gpu
from unit.machine.machines import Tree

Install = Callable[[types.ModuleType | None], None]

UUIDS = ["GPU-aaaa-1", "GPU-aabb-2", "GPU-cccc-3"]


class NVMLError(Exception):
    pass


class LibraryNotFound(NVMLError):
    pass


class DriverNotLoaded(NVMLError):
    pass


def library(count: int = 3, **changes: Any) -> Any:
    """Return a module with the calls that hotlap makes; a change of None removes a call."""
    calls = {
        "NVMLError": NVMLError,
        "NVMLError_LibraryNotFound": LibraryNotFound,
        "NVMLError_DriverNotLoaded": DriverNotLoaded,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: count,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetUUID": lambda handle: UUIDS[handle].encode(),
        "nvmlDeviceGetName": lambda handle: f"Model {handle}",
        "nvmlDeviceGetMemoryInfo": lambda _: types.SimpleNamespace(total=80 << 30, used=1 << 30),
        "nvmlDeviceGetUtilizationRates": lambda _: types.SimpleNamespace(gpu=75, memory=20),
        "nvmlDeviceGetClockInfo": lambda _, kind: {1: 1500, 2: 2600}[kind],
        "nvmlDeviceGetPowerUsage": lambda _: 250_000,
        "nvmlDeviceGetTemperature": lambda _, sensor: 60 + sensor,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda _: 0x1 | 0x4 | 0x40,
        "nvmlDeviceGetCurrPcieLinkGeneration": lambda _: 4,
        "nvmlDeviceGetCurrPcieLinkWidth": lambda _: 16,
        "nvmlDeviceGetMaxPcieLinkGeneration": lambda _: 5,
        "nvmlDeviceGetMaxPcieLinkWidth": lambda _: 16,
        "nvmlDeviceGetCudaComputeCapability": lambda _: (9, 0),
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [
            types.SimpleNamespace(pid=pid) for pid in (7, 8, 90)
        ],
    }
    module = types.ModuleType("pynvml")
    for name, value in {**calls, **changes}.items():
        if value is not None:
            setattr(module, name, value)
    return module


def failing(error: Exception) -> Any:
    def call(*_: Any) -> Any:
        raise error

    return call


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda module: monkeypatch.setitem(sys.modules, "pynvml", module)


def test_without_the_package(
    install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(None)
    monkeypatch.setattr(gpu, "_DRIVER_SIGNS", (str(tmp_path),))
    assert gpu.connect({}) == (None, gpu.NOT_INSTALLED)
    monkeypatch.setattr(gpu, "_DRIVER_SIGNS", (str(tmp_path / "missing"),))
    assert gpu.connect({}) == (None, "no NVIDIA driver is loaded")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LibraryNotFound(), "no NVIDIA driver: NVML library not found"),
        (DriverNotLoaded(), "the NVIDIA driver is installed but not loaded"),
        (NVMLError("Insufficient Permissions"), "NVML does not start: Insufficient Permissions"),
    ],
)
def test_without_a_driver(install: Install, error: Exception, words: str) -> None:
    install(library(nvmlInit=failing(error)))
    assert gpu.connect({}) == (None, words)


def test_a_driver_that_does_not_answer(install: Install) -> None:
    install(library(nvmlDeviceGetCount=failing(NVMLError("GPU is lost"))))
    assert gpu.connect({}) == (None, "the NVIDIA driver does not answer: GPU is lost")


def refuse(index: int) -> Any:
    """Return a handle but for the first GPU: another container's, say."""
    if index == 0:
        raise NVMLError("Insufficient Permissions")
    return index


def test_a_gpu_that_may_not_be_opened_is_left_out_and_not_counted(install: Install) -> None:
    install(library(nvmlDeviceGetHandleByIndex=refuse))
    gpus, because = gpu.connect({"CUDA_VISIBLE_DEVICES": "1,0"})
    assert because is None
    assert gpus is not None
    assert [fact["index"] for fact in gpus.facts()] == [2, 1]
    assert [fact["uuid"] for fact in gpus.facts()] == ["GPU-cccc-3", "GPU-aabb-2"]


def test_a_driver_that_opens_no_gpu(install: Install) -> None:
    ended = []
    install(
        library(count=1, nvmlDeviceGetHandleByIndex=refuse, nvmlShutdown=lambda: ended.append(True))
    )
    words = "the NVIDIA driver opens none of its 1 GPUs: Insufficient Permissions"
    assert gpu.connect({}) == (None, words)
    assert ended == [True]


def test_a_slice_of_a_gpu(install: Install) -> None:
    """What belongs to the whole GPU is refused for a slice; its memory is its own."""
    refused = failing(NVMLError("Not Supported"))
    install(
        library(
            nvmlDeviceGetHandleByUUID=lambda uuid: {"MIG-1234": "slice"}[uuid],
            nvmlDeviceGetDeviceHandleFromMigDeviceHandle=lambda handle: {"slice": 1}[handle],
            nvmlDeviceGetIndex=lambda handle: handle,
            nvmlDeviceGetMemoryInfo=lambda handle: types.SimpleNamespace(
                total={"slice": 10 << 30}[handle], used=1 << 30
            ),
            nvmlDeviceGetUtilizationRates=refused,
            nvmlDeviceGetPowerUsage=refused,
        )
    )
    gpus, because = gpu.connect({"CUDA_VISIBLE_DEVICES": "MIG-1234,MIG-5678"})
    assert because is None
    assert gpus is not None
    (sample,) = gpus.sample()
    assert (sample["index"], sample["memory_total_bytes"]) == (1, 10 << 30)
    assert (sample["busy_share"], sample["power_mw"]) == (None, None)


@pytest.mark.parametrize("call", [None, failing(NVMLError("Not Found"))])
def test_a_slice_that_nvml_does_not_know(install: Install, call: Any) -> None:
    install(library(nvmlDeviceGetHandleByUUID=call))
    gpus, because = gpu.connect({"CUDA_VISIBLE_DEVICES": "MIG-1234"})
    assert gpus is None
    assert because is not None
    assert because.startswith("NVML does not find the MIG slice")


def test_a_driver_without_gpus(install: Install) -> None:
    install(library(count=0))
    gpus, because = gpu.connect({})
    assert gpus is None
    assert because == "the NVIDIA driver is there, but it shows no GPU"


def test_one_sample(install: Install) -> None:
    install(library(count=1))
    gpus, because = gpu.connect({})
    assert because is None
    assert gpus is not None
    assert gpus.sample(own={7, 8}) == [
        {
            "index": 0,
            "busy_share": 0.75,
            "memory_busy_share": 0.2,
            "memory_used_bytes": 1 << 30,
            "memory_total_bytes": 80 << 30,
            "sm_clock_hz": 1_500_000_000,
            "memory_clock_hz": 2_600_000_000,
            "power_mw": 250_000,
            "temperature_c": 60,
            "throttled_by": ["software power cap", "hardware thermal slowdown"],
            "pcie_generation": 4,
            "pcie_width": 16,
            "others": 1,
        }
    ]


@pytest.mark.parametrize(
    ("own", "others"), [({7, 8, 90}, 0), ({7}, 2), ({1}, None), (frozenset(), None)]
)
def test_others_are_told_only_where_ours_are_among_them(
    install: Install, own: set[int], others: int | None
) -> None:
    """In a container the driver may count processes by the host's numbers."""
    install(library(count=1))
    gpus, _ = gpu.connect({})
    assert gpus is not None
    assert gpus.sample(own)[0]["others"] == others


def test_facts(install: Install) -> None:
    install(library(count=1))
    gpus, _ = gpu.connect({})
    assert gpus is not None
    assert gpus.facts() == [
        {
            "index": 0,
            "name": "Model 0",
            "uuid": "GPU-aaaa-1",
            "memory_total_bytes": 80 << 30,
            "pcie_generation_max": 5,
            "pcie_width_max": 16,
            "capability": [9, 0],
        }
    ]


def test_what_a_gpu_does_not_tell_is_none(install: Install) -> None:
    """A refused call and a call that an old package does not have."""
    install(
        library(
            count=1,
            nvmlDeviceGetPowerUsage=failing(NVMLError("Not Supported")),
            nvmlDeviceGetUtilizationRates=failing(NVMLError("Not Supported")),
            nvmlDeviceGetCurrentClocksEventReasons=None,
            NVML_CLOCK_SM=None,
        )
    )
    gpus, _ = gpu.connect({})
    assert gpus is not None
    (sample,) = gpus.sample({7})
    missing = {name for name, value in sample.items() if value is None}
    expected = {"power_mw", "busy_share", "memory_busy_share", "throttled_by", "sm_clock_hz"}
    assert missing == expected


def test_the_older_name_of_the_throttle_reasons(install: Install) -> None:
    install(
        library(
            count=1,
            nvmlDeviceGetCurrentClocksEventReasons=None,
            nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0x80,
        )
    )
    gpus, _ = gpu.connect({})
    assert gpus is not None
    assert gpus.sample()[0]["throttled_by"] == ["hardware power brake"]


@pytest.mark.parametrize(
    ("setting", "indices"),
    [
        (None, [0, 1, 2]),
        ("2,0", [2, 0]),
        ("GPU-cccc", [2]),
        ("GPU-aa", []),
        ("GPU-aabb-2, 0", [1, 0]),
        ("0,7,1", [0]),
        ("", []),
        ("-1", []),
        ("1,1", []),
        ("MIG-aaaa", []),
    ],
)
def test_visible_devices(setting: str | None, indices: list[int]) -> None:
    assert gpu.visible(UUIDS, setting) == indices


def test_only_visible_gpus_are_sampled(install: Install) -> None:
    install(library())
    gpus, _ = gpu.connect({"CUDA_VISIBLE_DEVICES": "2,GPU-aaaa"})
    assert gpus is not None
    assert [sample["index"] for sample in gpus.sample()] == [2, 0]
    assert gpu.connect({"CUDA_VISIBLE_DEVICES": "-1"}) == (
        None,
        "CUDA_VISIBLE_DEVICES='-1' hides all 3 GPUs",
    )


def test_closing(install: Install) -> None:
    ended = []
    install(library(count=1, nvmlShutdown=lambda: ended.append(True)))
    gpus, _ = gpu.connect({})
    assert gpus is not None
    gpus.close()
    assert ended == [True]
    assert gpus.sample() == []


def test_a_driver_seen_without_nvml(tree: Tree) -> None:
    card = "proc/driver/nvidia/gpus/0000:0{}:00.0/information"
    root = tree({card.format(n): "Model: \t\t NVIDIA H200\nIRQ: 5\n" for n in (1, 2)})
    assert gpu.driver_models(root) == ["NVIDIA H200", "NVIDIA H200"]
    assert not gpu.has_amd_driver(root)


def test_the_package_has_every_call_that_is_made_of_it() -> None:
    """By nvidia-ml-py itself, which needs no driver to be imported."""
    package = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    source = Path(gpu.__file__).read_text()
    names = set(re.findall(r"\b(?:nvml[A-Z]\w+|NVML_\w+|NVMLError\w*)\b", source))
    assert len(names) > 20
    # The older name of the clocks' reasons is asked for where the newer one is missing.
    missing = {name for name in names if not hasattr(package, name)}
    assert missing <= {"nvmlDeviceGetCurrentClocksThrottleReasons"}


def test_the_bits_of_clocks_held_back_are_the_packages() -> None:
    package = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    for bit, name in {
        0x2: "ApplicationsClocksSetting",
        0x4: "SwPowerCap",
        0x8: "HwSlowdown",
        0x10: "SyncBoost",
        0x20: "SwThermalSlowdown",
        0x40: "HwThermalSlowdown",
        0x80: "HwPowerBrakeSlowdown",
        0x100: "DisplayClockSetting",
    }.items():
        assert getattr(package, f"nvmlClocksEventReason{name}") == bit
        assert len(gpu.throttle_words(bit)) == 1


def test_without_a_driver_the_package_says_so() -> None:
    package = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    try:
        package.nvmlInit()
    except package.NVMLError:
        gpus, because = gpu.connect({})
        assert gpus is None
        assert because
    else:
        package.nvmlShutdown()
        pytest.skip("this machine has an NVIDIA driver")
