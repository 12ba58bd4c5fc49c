"""# allocator: another way of taking memory from the system

**What.** The C library gives large pieces of memory back to the system when they are freed, and
each use after that costs a page fault for every 4 KiB. Temporaries of a training on a processor are
such pieces, made and freed at each step.

* `glibc-thresholds`: the C library's own allocator keeps them (`MALLOC_MMAP_THRESHOLD_`,
  `MALLOC_TRIM_THRESHOLD_`),
* `tcmalloc`, `jemalloc`, `mimalloc`: these allocators, where they are installed (`LD_PRELOAD`).

**Where it helps.** Trainings on a processor whose operators write large results.

**What else it changes.** Memory that was used once stays with the process. Numbers are the same.
What the environment says already (`LD_PRELOAD`, `MALLOC_*`) stays. Processes that the training
starts after its first step do not inherit the library.
"""

from __future__ import annotations

import ctypes.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hotlap.knobs.offers import judged
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import is_cpu, share_of

NAME: Final = "allocator"
PHASE: Final = "forward"
NUMERICS: Final = ("identical",)
GLIBC: Final = "glibc-thresholds"
LIBRARIES: Final = {
    "tcmalloc": ("tcmalloc_minimal", "tcmalloc"),
    "jemalloc": ("jemalloc",),
    "mimalloc": ("mimalloc",),
}
_THRESHOLDS: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": "-1",
}
"""Below 1 GiB memory is taken from the heap, and the heap is not trimmed: mallopt(3)."""
_OURS: Final = ":"
"""Ends an ``LD_PRELOAD`` of ours. The linker passes over the empty entry after it."""
_MAPS: Final = Path("/proc/self/maps")


def applies(case: Case) -> Offer | No:
    """Offer what is there for trainings on the processor, if the user has chosen nothing."""
    if not is_cpu(case.facts):
        return No("the model does not run on the processor")
    if case.facts.run.machine.facts.get("system") not in (None, "Linux"):
        return No("it is known for Linux only")
    words = _chosen(case.environ)
    if words:
        return No(f"{words} is set in the environment, and stays")
    found = case.facts.run.machine.facts.get("allocators") or {}
    values = [name for name in LIBRARIES if name in found]
    values.insert(1 if values[:1] == ["tcmalloc"] else 0, GLIBC)
    because = "operators on the processor take and free memory at each step"
    share = share_of(case.facts, "forward", "backward", "optimizer")
    return judged(case, NAME, share, Offer(tuple(values), NUMERICS[0], because))


def environment(value: Any, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an allocator; none where it is missing or the user has chosen."""
    if _chosen(environ):
        return {}
    if value == GLIBC:
        return dict(_THRESHOLDS)
    library = _library(str(value), environ)
    return {"LD_PRELOAD": f"{library}{_OURS}"} if library else {}


def apply(target: Target, value: Any) -> None:
    """Prove that it is in use, and spare the script's children from it after the first step."""
    if value == GLIBC:
        if all(os.environ.get(name) == wanted for name, wanted in _THRESHOLDS.items()):
            target.acted("the C library was started with these thresholds")
        else:
            target.note("its variables were not set when the process started")
        return
    library = next((one for one in _mapped() if _is(one, str(value))), None)
    if library is None:
        target.note(f"{value} is not loaded: it is not installed, or LD_PRELOAD is the user's")
        return
    target.acted(f"{library} is loaded")
    target.after_first_step(_leave_children_alone)


def _leave_children_alone() -> None:
    if os.environ.get("LD_PRELOAD", "").endswith(_OURS):
        del os.environ["LD_PRELOAD"]


def _chosen(environ: Mapping[str, str]) -> str | None:
    """Return the variable by which the user has chosen an allocator or its ways, or None."""
    names = ("LD_PRELOAD", "GLIBC_TUNABLES")
    own = [name for name in environ if name in names or name.startswith("MALLOC_")]
    return next((name for name in own if environ[name] and not environ[name].endswith(_OURS)), None)


def _library(name: str, environ: Mapping[str, str]) -> str | None:
    """Return what the linker finds an installed allocator by: a file name, or a path."""
    for one in LIBRARIES.get(name, ()):
        found = ctypes.util.find_library(one)
        if found:
            return found
    prefix = environ.get("CONDA_PREFIX")
    folder = Path(prefix, "lib") if prefix else None
    if folder is not None and folder.is_dir():
        for one in LIBRARIES.get(name, ()):
            paths = sorted(folder.glob(f"lib{one}.so*"))
            if paths and ":" not in str(paths[0]) and " " not in str(paths[0]):
                return str(paths[0])
    return None


def _mapped() -> list[str]:
    """Return the file names of the libraries that are loaded."""
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return list(
        dict.fromkeys(os.path.basename(line.split()[-1]) for line in lines if ".so" in line)
    )


def _is(library: str, name: str) -> bool:
    return any(library.startswith(f"lib{one}") for one in LIBRARIES.get(name, ()))


def snippet(value: Any) -> str:
    """Return what to set in front of the command."""
    if value == GLIBC:
        return " ".join(f"{name}={wanted}" for name, wanted in _THRESHOLDS.items()) + " python …"
    names = LIBRARIES.get(str(value), ("",))
    return f"LD_PRELOAD=lib{names[0]}.so python …  # with the version that is installed"
