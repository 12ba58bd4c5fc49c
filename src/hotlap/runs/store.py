"""The directory of all runs: ``.hotlap`` in the start directory, else in XDG_STATE_HOME."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hotlap.errors import NotMeasurable, UnreadableRun, WrongUse
from hotlap.runs import layout

FOLDER: Final = ".hotlap"
KEEP_RUNS: Final = 50
KEEP_BYTES: Final = 2 << 30
_YOUNG_S: Final = 60
_SILENT_S: Final = 86400


@dataclass(frozen=True)
class StoredRun:
    """One run as a list shows it. exit_code None: it still runs, or its end was lost."""

    id: str
    path: Path
    started: str
    command: tuple[str, ...]
    exit_code: int | None
    steps: int | None
    size_bytes: int


class Store:
    """All runs of one start directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"

    def new(self) -> Path:
        """Make an empty run directory and return it; raises NotMeasurable when that fails."""
        try:
            return self._numbered(time.time_ns())
        except OSError as error:
            raise NotMeasurable(f"cannot make a run directory in {self.runs}: {error}") from error

    def _numbered(self, now_ns: int) -> Path:
        """Make a run directory whose name sorts by time: date, second, 65536ths of a second."""
        self.runs.mkdir(parents=True, mode=0o700, exist_ok=True)
        while True:
            second, rest = divmod(now_ns, 1_000_000_000)
            stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(second))
            path = self.runs / f"{stamp}-{(rest << 16) // 1_000_000_000:04x}"
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                now_ns += 1_000_000_000 >> 16  # somebody else's, made at the same instant
            else:
                return path

    def find(self, name: str | None) -> Path:
        """Return the run named by id, by a unique beginning or end of it, or by path.

        name: None means the latest. Raises UnreadableRun when there is none, or several.
        """
        if name is None:
            found = self._folders()
            if not found:
                raise UnreadableRun(f"no runs in {self.runs}: measure one with `hotlap run …`")
            return found[-1]
        path = Path(name)
        if (path / layout.MANIFEST).is_file():
            return path
        matches = [
            folder
            for folder in self._folders()
            if folder.name == name or folder.name.startswith(name) or folder.name.endswith(name)
        ]
        whole = [folder for folder in matches if folder.name == name]
        if len(matches) == 1 or whole:
            return (whole or matches)[0]
        if not matches:
            raise UnreadableRun(f"no run {name!r} in {self.runs}: see `hotlap runs list`")
        names = ", ".join(folder.name for folder in matches[:5])
        raise UnreadableRun(f"{name!r} names {len(matches)} runs ({names}): give more of it")

    def all(self) -> list[StoredRun]:
        """Return all runs, oldest first; a damaged one is listed with what is known."""
        return [_stored(folder) for folder in self._folders()]

    def prune(
        self,
        keep_runs: int = KEEP_RUNS,
        keep_bytes: int = KEEP_BYTES,
        dry_run: bool = False,
    ) -> list[StoredRun]:
        """Remove the oldest runs beyond the limits, never one that still runs.

        Returns what was (or with ``dry_run`` would be) removed, oldest first.
        """
        kept_bytes = 0
        kept = 0
        removed: list[StoredRun] = []
        for run in reversed(self.all()):
            kept += 1
            kept_bytes += run.size_bytes
            within = kept <= keep_runs and kept_bytes <= keep_bytes
            if within or kept == 1 or _alive(run.path):
                continue
            removed.append(run)
            if not dry_run:
                shutil.rmtree(run.path, ignore_errors=True)
        return removed[::-1]

    def _folders(self) -> list[Path]:
        if not self.runs.is_dir():
            return []
        return sorted(folder for folder in self.runs.iterdir() if folder.is_dir())


def make_run(output: Path) -> Path:
    """Make an empty run directory at a path of the user's choice, outside of any store.

    Raises WrongUse when something lies there, NotMeasurable when it cannot be made.
    """
    path = output.absolute()
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise WrongUse(f"{output} exists already: give -o a path that is free")
        path.mkdir(parents=True, mode=0o700, exist_ok=True)
    except OSError as error:
        raise NotMeasurable(f"cannot make the run directory {path}: {error}") from error
    return path


def open_store(start: Path) -> Store:
    """Return the store for a start directory, made if needed with a ``.gitignore`` of ``*``.

    Falls back to ``XDG_STATE_HOME/hotlap`` (``~/.local/state/hotlap``) where the start directory
    cannot be written. Raises NotMeasurable when neither can.
    """
    errors = []
    for where in ("start", "state"):
        try:
            folder = start.absolute() / FOLDER if where == "start" else _state_folder()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            ignore = folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            if os.access(folder, os.W_OK | os.X_OK):
                return Store(folder)
            errors.append(f"{folder} is not writable")
        except (OSError, RuntimeError) as error:  # RuntimeError: a user without a home
            errors.append(str(error))
    raise NotMeasurable("no place for runs: " + "; ".join(errors))


def _state_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "hotlap"


def write_manifest(run: Path, manifest: dict[str, Any]) -> None:
    """Write ``run.json`` as a whole or not at all; raises OSError when the disk refuses."""
    target = run / layout.MANIFEST
    temporary = run / f"{layout.MANIFEST}.{os.getpid()}.new"
    try:
        temporary.write_text(json.dumps(manifest, indent=1) + "\n")
        os.replace(temporary, target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def read_manifest(run: Path) -> dict[str, Any]:
    """Read ``run.json``; raises UnreadableRun when it is missing, damaged or too new."""
    target = run / layout.MANIFEST
    try:
        manifest = json.loads(target.read_text())
    except FileNotFoundError:
        raise UnreadableRun(f"{run} holds no {layout.MANIFEST}: it is no run directory") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableRun(f"{target} cannot be read: {error}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise UnreadableRun(f"{target} is no manifest of a run")
    if manifest["format"] > 1:
        raise UnreadableRun(
            f"{run} was written in format {manifest['format']}, this hotlap reads format 1: "
            "update hotlap (pip install -U hotlap)"
        )
    return manifest


def _stored(folder: Path) -> StoredRun:
    try:
        manifest = read_manifest(folder)
    except UnreadableRun:
        manifest = {}
    command, exit_code, steps = (manifest.get(name) for name in ("command", "exit_code", "steps"))
    return StoredRun(
        id=folder.name,
        path=folder,
        started=str(manifest.get("started", "")),
        command=tuple(map(str, command)) if isinstance(command, list) else (),
        exit_code=exit_code if isinstance(exit_code, int) else None,
        steps=steps if isinstance(steps, int) else None,
        size_bytes=sum(size for size, _ in _files(folder)),
    )


def _files(folder: Path) -> Iterator[tuple[int, float]]:
    """Yield size and time of the last change of every file; one that vanishes is left out."""
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                status = os.stat(os.path.join(place, name))
            except OSError:
                continue
            yield status.st_size, status.st_mtime


def _alive(folder: Path) -> bool:
    """Tell whether a run may still go on, and so must stay."""
    try:
        manifest = read_manifest(folder)
    except UnreadableRun:
        return _silent_s(folder) < _YOUNG_S  # about to get its manifest
    if manifest.get("exit_ns") is not None:
        return False
    if manifest.get("host") != socket.gethostname():
        # A disk shared by several machines: the launcher's process is not to be seen from here.
        return _silent_s(folder) < _SILENT_S
    launcher = manifest.get("launcher_pid")
    return isinstance(launcher, int) and launcher > 0 and _exists(launcher)


def _silent_s(folder: Path) -> float:
    """Return the seconds since something in the folder was changed; 0 of one that is gone."""
    try:
        newest = folder.stat().st_mtime
    except OSError:
        return 0.0
    return time.time() - max([newest, *(changed for _, changed in _files(folder))])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True  # somebody else's
    except (OSError, OverflowError):
        return False
    return True
