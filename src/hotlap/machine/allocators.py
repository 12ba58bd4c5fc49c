"""Memory allocators that can be put in front of the C library's own, and are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from typing import Final

NAMES: Final = ("tcmalloc", "jemalloc", "mimalloc")

_LIBRARY: Final = re.compile(r"lib(tcmalloc|jemalloc|mimalloc)[\w.-]*?\.(so|dylib)[\d.]*$")
_FOLDERS: Final = (
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/opt/homebrew/lib",
)


def name_of(path: str) -> str | None:
    """Return the allocator that a library's file name says, or None."""
    found = _LIBRARY.match(os.path.basename(path))
    return found[1] if found else None


def parse_ldconfig(text: str) -> list[str]:
    """Return the paths that ``ldconfig -p`` lists."""
    return [line.rpartition("=> ")[2].strip() for line in text.splitlines() if "=> " in line]


def choose(paths: Iterable[str]) -> dict[str, str]:
    """Return the library to take per allocator, in the order of ``NAMES``.

    tcmalloc's minimal build comes first: the others bring profilers that a training does not need.
    Debug builds are left out.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        name = name_of(path)
        if name and "debug" not in os.path.basename(path):
            found.setdefault(name, []).append(path)
    return {
        name: sorted(found[name], key=lambda path: ("minimal" not in path, len(path), path))[0]
        for name in NAMES
        if name in found
    }


def find(folders: Sequence[str] = ()) -> dict[str, str]:
    """Return installed allocators as ``{name: path of the library}``.

    folders: searched besides the loader's own and the usual ones (``lib`` of a conda environment).
    Cost: one ``ldconfig -p``, tens of milliseconds.
    """
    paths = parse_ldconfig(_ldconfig())
    for folder in (*folders, *_FOLDERS):
        try:
            paths.extend(os.path.join(folder, name) for name in os.listdir(folder))
        except OSError:
            continue
    return choose(path for path in paths if name_of(path) and os.path.isfile(path))


def _ldconfig() -> str:
    """Return what ``ldconfig -p`` prints; nothing where there is none (macOS, musl)."""
    program = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, "-p"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
