"""Mount points, from ``/proc/self/mountinfo`` (its format: proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotlap.machine.readfile import ROOT, read


@dataclass(frozen=True)
class Mount:
    """One mounted file system.

    device_number: ``major:minor`` as the kernel gives it; 0 as major means no block device.
    top: the folder of the file system that is mounted (``/`` unless a part of it is).
    point: where it is mounted. source: device or server. options: of mount and super block.
    """

    device_number: str
    top: str
    point: str
    file_system: str
    source: str
    options: tuple[str, ...]


def _unescape(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Parse ``mountinfo``; lines that do not have its shape are skipped."""
    mounts = []
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        before, after = left.split(), right.split()
        if not separator or len(before) < 6 or len(after) < 2:
            continue
        options = before[5].split(",") + (after[2].split(",") if len(after) > 2 else [])
        mounts.append(
            Mount(
                device_number=before[2],
                top=_unescape(before[3]),
                point=_unescape(before[4]),
                file_system=after[0],
                source=_unescape(after[1]),
                options=tuple(options),
            )
        )
    return tuple(mounts)


def read_mounts(root: Path = ROOT) -> tuple[Mount, ...] | None:
    """Return the mounts that this process sees, or None without ``/proc``."""
    text = read(root / "proc/self/mountinfo")
    return None if text is None else parse_mountinfo(text)


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """Return the mount that an absolute path without links lies on.

    The longest mount point wins; of several on the same point, the last one, which hides the rest.
    """
    best: Mount | None = None
    target = PurePosixPath(path)
    for mount in mounts:
        longer = best is None or len(mount.point) >= len(best.point)
        if longer and target.is_relative_to(mount.point):
            best = mount
    return best


def real_path(path: str | os.PathLike[str]) -> str:
    """Return a path absolute and free of links, whether or not it exists."""
    return os.path.realpath(os.path.expanduser(path))
