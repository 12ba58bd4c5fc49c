"""Functions of C and C++ below the user's lines, by py-spy, from outside of the training.

Our own sampler sees Python's frames alone: that a line spends its time in ``libjpeg`` or in a
kernel of torch's nobody sees from there. py-spy (an extra: ``hotlap[pyspy]``) unwinds native
stacks. It stops the process for each of them, so this is a trial of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from hotlap.experiment.trials import Trial
from hotlap.experiment.windows import results
from hotlap.runs.reading import read_run
from hotlap.values.facts import Facts, Measured, Missing
from hotlap.values.record import Place
from hotlap.values.trial import NativeEntry

_FILE: Final = "native-stacks.txt"
_HZ: Final = 100
_PATIENCE_S: Final = 30.0
_LEAST: Final = 20
"""Samples of a line below which nothing is said of it."""
_NAMED: Final = 3
"""Functions that are kept of a line."""
_LONGEST: Final = 60
_FRAME: Final = re.compile(r"^(?P<name>.*) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)$")
_SUFFIX: Final = re.compile(r"(-[0-9a-f]{8})?\.(cpython|abi3|so)\b.*$")
_BELOW: Final = ("libc", "libgomp", "libpthread", "ld-linux", "libm", "libstdc++")
"""Libraries that others wait or copy in: who called them says more."""


class NativeStacks:
    """py-spy beside a trial. folder: where its file comes to lie, the diagnosis' own."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._program = shutil.which("py-spy", path=Path(sys.executable).parent) or shutil.which(
            "py-spy"
        )
        self._child: subprocess.Popen[str] | None = None
        self._said = ""

    def __enter__(self) -> NativeStacks:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def why_not(self) -> str | None:
        """Say in words why there can be no native stacks; None where they may be had."""
        if self._program is None:
            return "py-spy is not installed: pip install 'hotlap[pyspy]'"
        return None if sys.platform == "linux" else "py-spy unwinds native stacks on Linux only"

    def look(self, folder: Path) -> None:
        """Start as soon as a step of the trial has ended."""
        if self._child is not None or self._program is None:
            return
        stepping = [one for one in read_run(folder).processes if one.first_step_ns]
        first = min(stepping, key=lambda one: one.rank or 0, default=None)
        if first is None:
            return
        command = [self._program, "record", "--pid", str(first.pid), "--native", "--subprocesses"]
        command += ["--rate", str(_HZ), "--format", "raw", "--full-filenames"]
        self._child = subprocess.Popen(
            [*command, "--output", str(self._path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _end(self) -> None:
        """py-spy ends with the process that it looks at, and writes what it saw."""
        child = self._child
        if child is None:
            return
        for signum in (None, signal.SIGINT, signal.SIGKILL):
            if signum is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signum)
            try:
                self._said = child.communicate(timeout=_PATIENCE_S)[1]
                return
            except subprocess.TimeoutExpired:
                continue

    def stacks(self) -> list[str] | str:
        """Return the stacks with their counts, a line each, or why there are none; forget them."""
        try:
            lines = self._path.read_text(errors="replace").splitlines()
        except OSError:
            last = [line for line in self._said.splitlines() if line.strip()]
            return f"py-spy saw nothing: {last[-1].strip()[:200]}" if last else "py-spy saw nothing"
        self._path.unlink(missing_ok=True)
        return lines


def with_native_stacks(
    facts: Facts, start: Path, trial: Trial | str, sampling: NativeStacks
) -> Facts:
    """Return the facts with the native functions below the lines that the profile names.

    start: the folder that places are relative to. trial: in words why there was none.
    """
    if isinstance(trial, str):
        return replace(facts, native=Missing(trial))
    stacks = sampling.stacks() if results(trial) else trial.why_not()
    if isinstance(stacks, str):
        return replace(facts, native=Missing(stacks))
    entries = facts.profile.value if isinstance(facts.profile, Measured) else ()
    places = {_key(start, one.place): one.place for one in entries if one.place is not None}
    found = native_entries(stacks, places)
    if not found:
        return replace(facts, native=Missing("no line had enough native stacks below it"))
    return replace(facts, native=Measured(found, "stacks of py-spy in a trial of its own"))


def native_entries(
    stacks: Iterable[str], places: Mapping[tuple[str, int], Place]
) -> tuple[NativeEntry, ...]:
    """Return the functions that take most of each line's samples.

    stacks: collapsed, outermost frame first, ``;`` between frames and the count at the end
    (Gregg, "The Flame Graph", CACM 2016). places: by file and line, as in the stacks.
    """
    seen: dict[Place, Counter[tuple[str | None, str | None]]] = defaultdict(Counter)
    for stack in stacks:
        text, _, count = stack.rpartition(" ")
        if not count.isdigit():
            continue
        frames = [match for one in text.split(";") if (match := _FRAME.match(one))]
        at, place = _innermost(frames, places)
        if place is not None:
            seen[place][_native(frames[at + 1 :])] += int(count)
    found = []
    for place, counted in seen.items():
        whole = sum(counted.values())
        if whole < _LEAST:
            continue
        for (function, library), samples in counted.most_common(_NAMED):
            if function is not None or library is not None:
                found.append(NativeEntry(place, function, library, samples / whole, whole))
    return tuple(sorted(found, key=lambda one: -one.share * one.samples))


def _innermost(
    frames: list[re.Match[str]], places: Mapping[tuple[str, int], Place]
) -> tuple[int, Place | None]:
    for at in range(len(frames) - 1, -1, -1):
        file, line = frames[at]["file"], frames[at]["line"]
        if line is not None and file.endswith(".py"):
            place = places.get((file, int(line)))
            if place is not None:
                return at, place
    return -1, None


def _native(frames: list[re.Match[str]]) -> tuple[str | None, str | None]:
    """Return function and library of the innermost native frame that says anything."""
    library = None
    for frame in reversed(frames):
        if frame["file"].endswith(".py"):
            break
        own = _library(frame["file"])
        if own is not None and own.startswith(_BELOW):
            continue
        library = library or own
        if not frame["name"].startswith("0x"):
            return _short(frame["name"]), own
    return None, library


def _library(file: str) -> str | None:
    if ".so" not in file:
        return None
    return _SUFFIX.sub("", os.path.basename(file)) or None


def _short(name: str) -> str:
    """Return a C++ name without its template arguments."""
    plain = re.sub(r"<[^<>]*>", "", name)
    while plain != name:
        name, plain = plain, re.sub(r"<[^<>]*>", "", plain)
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def _key(start: Path, place: Place) -> tuple[str, int]:
    return str(start / place.file), place.line
