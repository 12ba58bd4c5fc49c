"""All that the checks look at, read once."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hotlap.machine import allocators, cpu, gpu, interpreter, kernel
from hotlap.machine.cgroup import Throttling
from hotlap.machine.disks import Disk, examine_all
from hotlap.machine.memory import Memory, Space, read_memory, read_shm

_HOOKS: Final = Path(__file__).resolve().parents[2] / "fast"
NO_PYTHON: Final = "there is no python on PATH"


@dataclass(frozen=True)
class Surroundings:
    """A machine and an environment. Each field is as its reader gives it; ``*_because`` says in
    words why the field before it is None. python_named: it is not simply the first on PATH.
    hooks: names of the compiled modules that this installation of hotlap has."""

    system: str
    release: str
    architecture: str
    container: str | None
    cores: cpu.Cores
    processor: cpu.Processor | None
    throttling: Throttling | None
    load: float | None
    memory: Memory
    shm: Space | None
    paths: tuple[str, ...]
    disks: tuple[Disk, ...] | None
    gpus: tuple[dict[str, Any], ...]
    gpus_because: str | None
    driver_models: tuple[str, ...]
    amd_driver: bool
    python: interpreter.Python | None
    python_because: str | None
    python_named: bool
    torch: interpreter.Torch | None
    torch_because: str | None
    hooks: tuple[str, ...]
    compiler: str | None
    compiler_name: str
    allocators: Mapping[str, str]
    schedstat: kernel.Facility
    thread_io: kernel.Facility
    pressure: kernel.Facility
    namespaces: kernel.Facility
    environ: Mapping[str, str]


def gather(
    paths: Sequence[str] = (".",),
    python: str | None = None,
    say: Callable[[str], None] | None = None,
) -> Surroundings:
    """Read the machine, and ask the user's Python.

    paths: whose disks to look at. python: the interpreter to ask, or None for the first on PATH.
    say: called with a line before each part that may take seconds.
    Raises WrongUse when ``python`` is given and there is no such program.
    Cost: the import of torch in a child process, 1 to 60 s, and some tenths of a second.
    """
    executable = interpreter.find_python(python)
    gpus, gpus_because = _gpus()
    asked = _ask(executable, say)
    prefix = asked[0].prefix if asked[0] else None
    compiler, compiler_name = interpreter.find_compiler()
    return Surroundings(
        system=kernel.system(),
        release=platform.release(),
        architecture=platform.machine(),
        container=kernel.container(),
        cores=cpu.read_cores(),
        processor=cpu.read_processor(),
        throttling=cpu.read_throttling(),
        load=cpu.read_load(),
        memory=read_memory(),
        shm=read_shm(),
        paths=tuple(paths),
        disks=examine_all(paths),
        gpus=gpus,
        gpus_because=gpus_because,
        driver_models=tuple(gpu.driver_models()),
        amd_driver=gpu.has_amd_driver(),
        python=asked[0],
        python_because=asked[1],
        python_named=python is not None,
        torch=asked[2],
        torch_because=asked[3],
        hooks=tuple(sorted(path.name for path in _HOOKS.glob("_hooks.*.so"))),
        compiler=compiler,
        compiler_name=compiler_name,
        allocators=allocators.find((os.path.join(prefix, "lib"),) if prefix else ()),
        schedstat=kernel.try_schedstat(),
        thread_io=kernel.try_thread_io(),
        pressure=kernel.try_pressure(),
        namespaces=kernel.try_namespaces(),
        environ=dict(os.environ),
    )


def _gpus() -> tuple[tuple[dict[str, Any], ...], str | None]:
    gpus, because = gpu.connect()
    if gpus is None:
        return (), because
    try:
        return tuple(gpus.facts()), None
    finally:
        gpus.close()


_Asked = tuple["interpreter.Python | None", "str | None", "interpreter.Torch | None", "str | None"]


def _nothing(text: str) -> None:
    """Say nothing."""


def _ask(executable: str | None, say: Callable[[str], None] | None) -> _Asked:
    """Ask the user's Python for its packages and its torch."""
    if executable is None:
        return None, NO_PYTHON, None, NO_PYTHON
    tell = say or _nothing
    tell(f"asking {executable} what it has installed")
    python, because_python = interpreter.ask_packages(executable)
    if python is None:
        return None, f"{executable}: {because_python}", None, "its Python does not answer"
    if "torch" not in python.packages:
        tell("looking for torch")
    else:
        tell(f"importing torch {python.packages['torch']} in a child process")
    torch, because_torch = interpreter.ask_torch(executable)
    return python, None, torch, because_torch
