"""Several ranks change over and stop at the same step, without a message of ours between them.

Counts are the same on all ranks, times are not: where a time ends a stretch of steps, rank 0 says
in a file of the run's folder at which step it ends, some steps ahead, and the others look for that
file at each step. Ranks that train together are never far apart: a step's gradients need all of
them. What the device is ahead of the host is covered by the margin.

Where the ranks are on several hosts the folder may not be shared: then only counts end anything.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hotlap.runs import layout

_MARGIN_NS: Final = 250_000_000
_FEWEST, _MOST = 2, 64


class Ranks:
    """What this process agrees on with its fellow ranks. One rank alone agrees with itself.

    run: the run's folder, which all ranks of the host see. rank, size: of all ranks. here: ranks
    on this host, None if unknown.
    """

    def __init__(self, run: Path, rank: int, size: int, here: int | None) -> None:
        self._run = run
        self._rank = rank
        self.alone = size <= 1
        self.by_count_only = not self.alone and here is not None and here != size
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
        return layout.agreement_file(self._run, os.getppid(), what)

    def _say(self, what: str, step: int) -> None:
        path = self._path(what)
        part = path.with_name(path.name + ".part")
        part.write_text(f"{os.getpid()} {step}")
        os.replace(part, path)
        self._said[what] = step

    def _read(self, what: str) -> int | None:
        try:
            pid, step = map(int, self._path(what).read_text().split())
            os.kill(pid, 0)  # what a rank 0 of an earlier training said is over with it
        except (OSError, ValueError):
            return None
        return step


def ranks_here(run: Path, environ: Mapping[str, str]) -> Ranks:
    """Return the ranks of which this process is one: as torch says, else as the launcher does."""
    rank, size = _number(environ, "RANK") or 0, _number(environ, "WORLD_SIZE") or 1
    here = _number(environ, "LOCAL_WORLD_SIZE")
    distributed = sys.modules["torch"].distributed
    with contextlib.suppress(Exception):
        if distributed.is_available() and distributed.is_initialized():
            rank, size = distributed.get_rank(), distributed.get_world_size()
    return Ranks(run, rank, size, here)


def _number(environ: Mapping[str, str], name: str) -> int | None:
    value = environ.get(name, "")
    return int(value) if value.isdigit() else None
