"""The few calls of Linux by which a process gets mounts of its own, without any program's help."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_NEW_MOUNTS: Final = 0x00020000
_NEW_USERS: Final = 0x10000000

READ_ONLY: Final = 1
REMOUNT: Final = 32
BIND: Final = 4096
RECURSIVE: Final = 16384
PRIVATE: Final = 1 << 18

_FLAGS: Final = {
    "ro": READ_ONLY,
    "nosuid": 2,
    "nodev": 4,
    "noexec": 8,
    "noatime": 1024,
    "nodiratime": 2048,
    "relatime": 1 << 21,
}
_DEATH_SIGNAL: Final = 1
_SUBREAPER: Final = 36


@dataclass(frozen=True)
class Mount:
    """One line of ``/proc/self/mountinfo``. options: those of this mount, not of its disk."""

    path: str
    kind: str
    options: frozenset[str]
    disk_options: frozenset[str]

    @property
    def is_writable(self) -> bool:
        """Tell whether neither the mount nor its file system is read-only."""
        return "ro" not in self.options and "ro" not in self.disk_options

    @property
    def flags(self) -> int:
        """Return what a remount has to repeat, so that nothing but its wish changes."""
        return sum(bit for name, bit in _FLAGS.items() if name in self.options)


def mounts(text: str) -> list[Mount]:
    """Return the mounts that ``mountinfo`` lists, the last of each path, sorted by path."""
    found: dict[str, Mount] = {}
    for line in text.splitlines():
        own, separator, disk = line.partition(" - ")
        words, disk_words = own.split(" "), disk.split(" ")
        if not separator or len(words) < 6 or len(disk_words) < 3:
            continue
        path = _unescaped(words[4])
        found[path] = Mount(
            path,
            disk_words[0],
            frozenset(words[5].split(",")),
            frozenset(disk_words[2].split(",")),
        )
    return [found[path] for path in sorted(found)]


def read_mounts() -> list[Mount]:
    """Return the mounts that this process sees."""
    return mounts(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))


def have_own_mounts() -> bool:
    """Leave the mounts of everybody else; return whether it took a user namespace.

    A process that may not mount becomes, in a user namespace of its own, one that may, under the
    same user and group ids. Raises OSError where the kernel allows neither. The process must have
    one thread.
    """
    try:
        _unshare(_NEW_MOUNTS)
        by_namespace = False
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _unshare(_NEW_USERS | _NEW_MOUNTS)
        by_namespace = True
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    mount(None, "/", None, RECURSIVE | PRIVATE)
    return by_namespace


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Call mount(2); raises OSError with the target's name."""
    _checked(
        _libc().mount(
            _bytes(source),
            os.fsencode(target),
            _bytes(kind),
            ctypes.c_ulong(flags),
            _bytes(data or None),
        ),
        target,
    )


def overlay(target: str, layers: tuple[int, int, int], flags: int, extra: Iterable[str]) -> None:
    """Lay a writable layer over a folder. layers: descriptors of lower, upper and work folder.

    Descriptors, because a path may hold what options cannot (commas, colons).
    """
    lower, upper, work = (f"/proc/self/fd/{one}" for one in layers)
    options = [f"lowerdir={lower}", f"upperdir={upper}", f"workdir={work}", *extra]
    mount("hotlap-trial", target, "overlay", flags, ",".join(options))


def die_with_parent(number: int) -> None:
    """Have the kernel send this process a signal when its parent ends. Never raises."""
    _prctl(_DEATH_SIGNAL, number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends. Never raises."""
    _prctl(_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    try:
        _libc().prctl(option, ctypes.c_ulong(value), 0, 0, 0)
    except (AttributeError, OSError):
        return  # not Linux


def _unshare(flags: int) -> None:
    try:
        call = _libc().unshare
    except AttributeError:
        raise OSError("this system has no mount namespaces") from None
    _checked(call(ctypes.c_int(flags)), None)


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, target: str | None) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)


def _unescaped(path: str) -> str:
    for code, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, letter)
    return path
