"""The user's line: the innermost frame that is neither standard library nor site-packages."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType
from typing import Any, Final

import hotlap

_OWN: Final = os.path.dirname(os.path.abspath(hotlap.__file__)) + os.sep
_DEPTH: Final = 60


class Places:
    """Finds the user's line in a stack of frames.

    start_dir: absolute path; files below it are shown relative to it.
    Cost: 0.3 us plus 0.1 us per library frame walked over.
    """

    def __init__(self, start_dir: str) -> None:
        self._start = start_dir.rstrip(os.sep) + os.sep
        self._mine: dict[str, bool] = {}
        paths = sysconfig.get_paths()
        library = {paths.get(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        self._library = tuple(
            sorted({os.path.realpath(path) + os.sep for path in library if path})
            + sorted({path + os.sep for path in library if path})
        )

    def is_users(self, filename: str) -> bool:
        """Tell whether a source file is the user's own. The answer is remembered."""
        known = self._mine.get(filename)
        if known is None:
            known = self._mine[filename] = self._judge(filename)
        return known

    def find(self, frame: FrameType | None) -> FrameType | None:
        """Return the innermost frame of the user's from ``frame`` outwards, or None."""
        mine = self._mine
        for _ in range(_DEPTH):
            if frame is None:
                return None
            filename = frame.f_code.co_filename
            known = mine.get(filename)
            if known is None:
                known = self.is_users(filename)
            if known:
                return frame
            frame = frame.f_back
        return None

    def shown(self, filename: str) -> str:
        """Return the file name as reports show it."""
        absolute = os.path.abspath(filename) if not filename.startswith("<") else filename
        if absolute.startswith(self._start):
            return absolute[len(self._start) :]
        return absolute

    def to_dict(self, frame: FrameType | None) -> dict[str, Any] | None:
        """Return the JSON form of a frame's place, the names of ``values.record.Place``."""
        if frame is None:
            return None
        code = frame.f_code
        return {
            "file": self.shown(code.co_filename),
            "line": frame.f_lineno,
            "function": code.co_name,
        }

    def _judge(self, filename: str) -> bool:
        if filename.startswith("<frozen") or filename.startswith(_OWN):
            return False
        if filename.startswith("<"):
            return True
        absolute = os.path.abspath(filename)
        if f"{os.sep}site-packages{os.sep}" in absolute or "dist-packages" in absolute:
            return self._in_entry_package(absolute)
        return not absolute.startswith(self._library)

    def _in_entry_package(self, absolute: str) -> bool:
        # `python -m pkg.train` of an installed package: its files are the user's code here.
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        origin = getattr(spec, "origin", None)
        name = (getattr(spec, "name", None) or "").split(".")[0]
        if not origin or name in ("torch", "accelerate", "lightning", "deepspeed", ""):
            return False
        folder = f"{os.sep}{name}{os.sep}"
        return folder in origin and absolute.startswith(origin.split(folder)[0] + folder)
