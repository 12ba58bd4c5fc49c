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
_INSTALLED: Final = ("site-packages", "dist-packages")
_GENERATED: Final = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
_LAUNCHERS: Final = ("torch", "accelerate", "lightning", "deepspeed")
_TYPED: Final = ("<stdin>", "<console>", "<input>", "<ipython-input", "<python-input", "<doctest ")
"""Names that Python and notebooks give to what a user types in."""


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
        # torch built in its source folder lies outside of site-packages.
        torch_file = getattr(sys.modules.get("torch"), "__file__", None)
        library.add(torch_file and os.path.dirname(torch_file))
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
        absolute = filename if filename.startswith("<") else self._absolute(filename)
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

    def _absolute(self, filename: str) -> str:
        # A relative name was meant from the start directory, wherever the script went since.
        return os.path.abspath(os.path.join(self._start, filename))

    def _judge(self, filename: str) -> bool:
        if filename.startswith(_OWN):
            return False
        if filename.startswith("<"):
            # Other text in brackets is code that a library made: of attrs, torch.fx, numpy.
            by_command = filename == "<string>" and _runs_a_command()
            return by_command or filename.startswith(_TYPED)
        absolute = self._absolute(filename)
        if any(f"{os.sep}{name}{os.sep}" in absolute for name in _INSTALLED):
            return self._in_entry_package(absolute)
        if _is_generated(absolute):
            return False
        return not absolute.startswith(self._library)

    def _in_entry_package(self, absolute: str) -> bool:
        # `python -m pkg.train` of an installed package: its files are the user's code here.
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        origin, name = getattr(spec, "origin", None), getattr(spec, "name", None)
        if not origin or not name or name.split(".")[0] in _LAUNCHERS:
            return False
        folder = str(origin)
        if "." not in name or not os.path.isabs(folder):
            return absolute == folder
        for _ in range(name.count(".")):
            folder = os.path.dirname(folder)
        return absolute.startswith(folder + os.sep)


def _is_generated(absolute: str) -> bool:
    """Tell whether torch.compile or Triton wrote the file, in the folder that they keep theirs in.

    torch puts its folder into the environment once it has worked it out.
    """
    folders = (os.environ.get(name) for name in _GENERATED)
    return f"{os.sep}torchinductor_" in absolute or any(
        folder and absolute.startswith(os.path.join(os.path.abspath(folder), ""))
        for folder in folders
    )


def _runs_a_command() -> bool:
    """Tell whether this is ``python -c``: options, then ``-c``, before any script."""
    for word in getattr(sys, "orig_argv", [])[1:]:
        if word == "-c":
            return True
        if word == "-m" or (not word.startswith("-") and word.endswith(".py")):
            return False
    return False
