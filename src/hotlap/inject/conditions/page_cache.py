"""What the kernel holds of files in its page cache: which files are read, what of them is there,
and letting go of it.

Only of single files, by ``posix_fadvise``: the whole cache belongs to the machine. mincore(2) tells
what is there, of files that we own or may write; of others it calls all resident, so that what is
said to be cold is cold.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

_SYSTEM: Final = ("/proc/", "/sys/", "/dev/", "/usr/", "/lib", "/etc/")
_DROP: Final = getattr(mmap, "MADV_DONTNEED", 4)


class Opened:
    """Notes the files that this process opens to read, while ``noting``.

    By an audit hook of the interpreter (``open``, PEP 578), which cannot be taken out again: after
    its use it returns at once.
    """

    def __init__(self) -> None:
        self._paths: set[str] | None = None
        self._hooked = False

    @contextlib.contextmanager
    def noting(self) -> Iterator[set[str]]:
        """Give the set into which paths come as they are opened."""
        if not self._hooked:
            sys.addaudithook(self._heard)
            self._hooked = True
        found: set[str] = set()
        self._paths = found
        try:
            yield found
        finally:
            self._paths = None

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        paths = self._paths
        if paths is None or event != "open":
            return
        path, _mode, flags = given
        if isinstance(flags, int) and flags & os.O_ACCMODE != os.O_RDONLY:
            return
        with contextlib.suppress(TypeError, ValueError):
            paths.add(os.path.abspath(os.fsdecode(path)))


def held_files() -> set[str]:
    """Return the files that this process has open to read, or mapped and not as code.

    Empty without ``/proc``.
    """
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = Path(f"/proc/self/fdinfo/{name}").read_text().split()
                if int(words[words.index("flags:") + 1], 8) & os.O_ACCMODE == os.O_RDONLY:
                    found.add(os.readlink(f"/proc/self/fd/{name}"))
    mapped = _mappings()
    code = {path for path, _, _, access in mapped if "x" in access}
    return found | {path for path, _, _, _ in mapped} - code


def data_files(paths: Iterable[str]) -> dict[str, int]:
    """Return those of the paths that are files of data, with their sizes in bytes.

    Left out are folders, devices, empty files, and what belongs to the system or to Python.
    """
    own = tuple({f"{one}/" for one in (sys.prefix, sys.base_prefix)})
    found = {}
    for path in paths:
        if path.startswith((*_SYSTEM, *own)):
            continue
        with contextlib.suppress(OSError, ValueError):
            seen = os.stat(path)
            if stat.S_ISREG(seen.st_mode) and seen.st_size:
                found[path] = seen.st_size
    return found


def resident_bytes(path: str) -> int | None:
    """Return how much of a file is in the page cache; None where the kernel does not tell."""
    libc = _libc()
    if libc is None:
        return None
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    except (OSError, ValueError):
        return None
    if at in (None, ctypes.c_void_p(-1).value):
        return None
    try:
        pages = -(-size // mmap.PAGESIZE)
        told = (ctypes.c_ubyte * pages)()
        if libc.mincore(at, size, told):
            return None
        return min(size, sum(one & 1 for one in told) * mmap.PAGESIZE)
    finally:
        libc.munmap(at, size)


def let_go(paths: Iterable[str]) -> None:
    """Ask the kernel to drop what it holds of files; what is not written yet is written before.

    Pages that a process has mapped stay. Those of this one are unmapped first, where the
    mapping can only be read: they come back when they are touched.
    """
    wanted = set(paths)
    libc = _libc()
    for path, begin, end, access in _mappings():
        # A private mapping may hold pages that were written, and then protected.
        if path in wanted and libc is not None and "w" not in access and access[3:4] == "s":
            libc.madvise(begin, end - begin, _DROP)
    for path in wanted:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _mappings() -> list[tuple[str, int, int, str]]:
    """Return path, first and last address, and access of every mapping of a file."""
    found = []
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        words = line.split(None, 5)
        if len(words) == 6 and words[5].startswith("/"):
            begin, _, end = words[0].partition("-")
            found.append((words[5], int(begin, 16), int(end, 16), words[1]))
    return found


@functools.cache
def _libc() -> Any:
    """Return the C library with the four calls, None where it has not all of them."""
    if not hasattr(os, "posix_fadvise"):
        return None
    try:
        libc = ctypes.CDLL(None)
        size, address, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
        libc.mmap.restype = address
        libc.mmap.argtypes = (address, size, number, number, number, ctypes.c_long)
        libc.mincore.argtypes = (address, size, ctypes.c_void_p)
        libc.munmap.argtypes = (address, size)
        libc.madvise.argtypes = (address, size, number)
    except (OSError, AttributeError):
        return None
    return libc
