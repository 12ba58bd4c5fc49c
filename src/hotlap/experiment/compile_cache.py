"""The trials of a diagnosis share what torch.compile made, apart from the user's own cache.

Each trial would throw away what it compiled and the next one would compile it again, for minutes.
So all of them use one cache, which begins as a copy of the user's: the first trial pays what the
user would pay, the later ones find what the first one made.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_NOT_IN_NAMES: Final = r'[\\/:*?"<>|]'
_MOST_BYTES: Final = 1 << 30
_MOST_FILES: Final = 20_000


class CompileCache:
    """The cache of one diagnosis.

    folder: where it lies; made by ``begin``. environ: the user's variables.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self._environ = environ
        self._is_used = False

    def begin(self) -> None:
        """Copy the user's caches; where they are too large the trials use none of ours."""
        places = {"inductor": self._inductor(), "triton": self._triton()}
        try:
            if sum(map(_size, places.values())) > _MOST_BYTES:
                return
            self.folder.mkdir(mode=0o700)
            for name, place in places.items():
                target = self.folder / name
                if place.is_dir():
                    shutil.copytree(place, target, symlinks=True, ignore_dangling_symlinks=True)
                else:
                    target.mkdir()
        except OSError:  # shutil.Error is one: a file vanished, or there is no room
            self.end()
            return
        self._is_used = True

    def variables(self) -> dict[str, str]:
        """Return the variables by which torch finds it."""
        if not self._is_used:
            return {}
        return {
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"),
            "TRITON_CACHE_DIR": str(self.folder / "triton"),
        }

    def through(self) -> tuple[Path, ...]:
        """Return the folder that trials really write to."""
        return (self.folder,) if self._is_used else ()

    def spoiled(self) -> None:
        """Give it up: a trial was killed, and may have left half a file in it."""
        self.end()

    def end(self) -> None:
        """Remove it."""
        self._is_used = False
        shutil.rmtree(self.folder, ignore_errors=True)

    def _inductor(self) -> Path:
        """Return where torch keeps its compiled code, as ``torch._inductor`` works it out."""
        if given := self._environ.get("TORCHINDUCTOR_CACHE_DIR"):
            return Path(given)
        temporary = self._environ.get("TMPDIR") or tempfile.gettempdir()
        try:
            user = getpass.getuser()
        except (OSError, KeyError, ImportError):
            user = f"uid_{os.getuid()}"
        return Path(temporary) / f"torchinductor_{re.sub(_NOT_IN_NAMES, '_', user)}"

    def _triton(self) -> Path:
        if given := self._environ.get("TRITON_CACHE_DIR"):
            return Path(given)
        home = (
            self._environ.get("TRITON_HOME") or self._environ.get("HOME") or os.path.expanduser("~")
        )
        return Path(home) / ".triton" / "cache"


def _size(folder: Path) -> int:
    """Return the bytes of a folder; more than can be copied when it holds too many files."""
    total = count = 0
    for place, _, names in os.walk(folder):
        for name in names:
            count += 1
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
            if total > _MOST_BYTES or count > _MOST_FILES:
                return _MOST_BYTES + 1
    return total
