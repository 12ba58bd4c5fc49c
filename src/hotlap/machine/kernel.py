"""Facilities of the kernel that the probe wants, each tried and not only looked for."""

from __future__ import annotations

import platform
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hotlap.machine.pressure import read_pressure
from hotlap.machine.readfile import ROOT, key_values, read

_SPIN_NS: Final = 5_000_000
"""CPU time to burn between two readings of the scheduler's counters: above any clock tick."""


@dataclass(frozen=True)
class Facility:
    """Something of the kernel: whether it works here (None: not tried), and what we saw."""

    works: bool | None
    seen: str


def parse_schedstat(text: str) -> tuple[int, int, int] | None:
    """Parse ``schedstat`` of a thread into nanoseconds on a core, nanoseconds waiting for one, and
    time slices; None when it is not of that shape."""
    words = text.split()
    if len(words) != 3 or not all(word.isdigit() for word in words):
        return None
    return int(words[0]), int(words[1]), int(words[2])


def _burn(ns: int) -> None:
    end = time.thread_time_ns() + ns
    while time.thread_time_ns() < end:
        pass


def _thread_file(name: str, root: Path) -> str | None:
    return read(root / f"proc/self/task/{threading.get_native_id()}/{name}")


def try_schedstat(root: Path = ROOT) -> Facility:
    """Read our thread's ``schedstat`` before and after some work. Cost: 5 ms of CPU.

    A kernel without the accounting has no file, or writes zeros for ever.
    """
    before = _thread_file("schedstat", root)
    if before is None:
        return Facility(False, "/proc/self/task/TID/schedstat cannot be read")
    first = parse_schedstat(before)
    _burn(_SPIN_NS)
    second = parse_schedstat(_thread_file("schedstat", root) or "")
    if first is None or second is None:
        return Facility(False, f"/proc/self/task/TID/schedstat says {before.strip()!r}")
    if second[0] <= first[0]:
        return Facility(False, "schedstat does not move: the kernel keeps no account of it")
    return Facility(True, "schedstat of each thread is readable and moves")


def try_thread_io(root: Path = ROOT) -> Facility:
    """Read our thread's ``io`` twice; its first reading must be counted in the second."""
    first = key_values(_thread_file("io", root) or "")
    if "rchar" not in first or "read_bytes" not in first:
        return Facility(False, "/proc/self/task/TID/io cannot be read")
    second = key_values(_thread_file("io", root) or "")
    if second.get("rchar", 0) <= first["rchar"]:
        return Facility(False, "the io counters do not move: the kernel keeps no account of them")
    return Facility(True, "io of each thread is readable and moves")


def try_pressure(root: Path = ROOT) -> Facility:
    """Tell whether pressure stall information can be read."""
    stalls = read_pressure(root)
    if stalls is None:
        return Facility(False, "/proc/pressure cannot be read")
    words = [f"{name} {stalls[key].share:.0%}" for name, key in _PRESSURE if key in stalls]
    return Facility(True, "waiting in the last 10 s: " + ", ".join(words))


_PRESSURE: Final = (("cpu", "cpu_some"), ("io", "io_some"), ("memory", "memory_some"))


_OVERLAY: Final = (
    "mount -t tmpfs none /tmp && cd /tmp && mkdir lower upper work merged && mount -t overlay"
    " overlay -o lowerdir=lower,upperdir=upper,workdir=work merged"
)
"""What the child does in its own mount namespace; nothing of it is left when it ends."""


def try_namespaces(root: Path = ROOT) -> Facility:
    """Mount an overlay in a user and a mount namespace of a child process that ends at once.

    Only with the real root; the child needs ``unshare`` and ``mount`` of util-linux.
    """
    program = shutil.which("unshare")
    if program is None or root != ROOT:
        return Facility(None, "the program unshare is not installed, so it was not tried")
    own = [program, "--user", "--map-root-user", "--mount"]
    refused = _refusal([*own, "true"])
    if refused is not None:
        return Facility(False, f"no user and mount namespaces: {refused}")
    refused = _refusal([*own, "sh", "-c", _OVERLAY])
    if refused is not None:
        return Facility(False, f"user and mount namespaces work, overlay does not: {refused}")
    return Facility(True, "user and mount namespaces work, and overlay inside them")


def _refusal(command: list[str]) -> str | None:
    """Return what a command says when it fails; None when it succeeds."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def system() -> str:
    """Return the kind of operating system: ``Linux``, ``Darwin``, ``Windows`` …"""
    return platform.system()


def container(root: Path = ROOT) -> str | None:
    """Return what kind of container this is, by the marks that engines leave; None: no mark.

    No mark does not prove that there is no container.
    """
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / "var/run/secrets/kubernetes.io").exists():
        return "kubernetes"
    if (root / "singularity").exists() or (root / ".singularity.d").exists():
        return "apptainer"
    return None
