"""Several ranks change over and stop at the same step, without a message of ours between them.

Counts are the same on all ranks, times are not: where a time ends a stretch of steps, rank 0 says
in a file of the run's folder at which step it ends, some steps ahead, and the others look for that
file at each step. Ranks that train together are never far apart: a step's gradients need all of
them. What the device is ahead of the host is covered by the margin.

Where the ranks are on several hosts the folder may not be shared: then only counts end anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_MARGIN_NS: Final = 250_000_000
_FEWEST, _MOST = 2, 64


class Ranks:
    """What this process agrees on with its fellow ranks. One rank alone agrees with itself.

    folder: one that all ranks of the host see. environ: where the launcher tells rank and size.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._rank = _number(environ, "RANK") or 0
        size = _number(environ, "WORLD_SIZE") or 1
        here = _number(environ, "LOCAL_WORLD_SIZE")
        self.alone = size <= 1
        self.by_count_only = not self.alone and here is not None and here != size
        # Several trainings of one launcher one after the other must not read each other's word.
        self._tag = environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._said: dict[str, int] = {}

    def ended(self, what: str, step: int, over: bool, step_ns: int) -> bool:
        """Tell whether a stretch ends with this step.

        what: names the stretch, the same on all ranks. step: number of this step. over: its time
        has passed, by this rank's clock. step_ns: how long a step takes.
        """
        if self.alone:
            return over
        if self.by_count_only:
            return False
        if what not in self._said:
            if self._rank == 0:
                if not over:
                    return False
                margin = -(-_MARGIN_NS // max(1, step_ns))
                self._say(what, step + min(_MOST, max(_FEWEST, margin)))
            elif (said := self._read(what)) is not None:
                self._said[what] = said
        return what in self._said and step >= self._said[what]

    def _path(self, what: str) -> Path:
        return self._folder / f"agreed-{what}-{self._tag}"

    def _say(self, what: str, step: int) -> None:
        path = self._path(what)
        part = path.with_suffix(".part")
        part.write_text(str(step))
        os.replace(part, path)
        self._said[what] = step

    def _read(self, what: str) -> int | None:
        try:
            return int(self._path(what).read_text())
        except (OSError, ValueError):
            return None


def _number(environ: Mapping[str, str], name: str) -> int | None:
    value = environ.get(name, "")
    return int(value) if value.isdigit() else None
