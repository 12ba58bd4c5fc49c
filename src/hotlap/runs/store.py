"""The directory of all runs: ``.hotlap`` in the start directory, else in XDG_STATE_HOME."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hotlap.errors import NotMeasurable, UnreadableRun, WrongUse
from hotlap.runs import layout

FOLDER: Final = ".hotlap"
KEEP_RUNS: Final = 50
KEEP_BYTES: Final = 2 << 30


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

    def new(self, output: Path | None = None) -> Path:
        """Make an empty run directory and return it.

        output: a path of the user's choice; raises WrongUse when something lies there.
        Raises NotMeasurable when no directory can be made.
        """
        if output is not None:
            if output.exists() and (not output.is_dir() or any(output.iterdir())):
                raise WrongUse(f"{output} exists already: give -o a path that is free")
            path = output.absolute()
        else:
            stamp = time.strftime("%Y%m%d-%H%M%S")
            path = self.runs / f"{stamp}-{secrets.token_hex(2)}"
        try:
            path.mkdir(parents=True, mode=0o700, exist_ok=output is not None)
        except OSError as error:
            raise NotMeasurable(f"cannot make the run directory {path}: {error}") from error
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
        if len(matches) == 1:
            return matches[0]
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


def open_store(start: Path) -> Store:
    """Return the store for a start directory, made if needed with a ``.gitignore`` of ``*``.

    Falls back to ``XDG_STATE_HOME/hotlap`` (``~/.local/state/hotlap``) where the start directory
    cannot be written. Raises NotMeasurable when neither can.
    """
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    errors = []
    for folder in (start.absolute() / FOLDER, state / "hotlap"):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            ignore = folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            if os.access(folder, os.W_OK | os.X_OK):
                return Store(folder)
            errors.append(f"{folder} is not writable")
        except OSError as error:
            errors.append(f"{folder}: {error}")
    raise NotMeasurable("no place for runs: " + "; ".join(errors))


def write_manifest(run: Path, manifest: dict[str, Any]) -> None:
    """Write ``run.json`` as a whole or not at all; raises OSError when the disk refuses."""
    target = run / layout.MANIFEST
    temporary = run / f"{layout.MANIFEST}.{os.getpid()}.new"
    temporary.write_text(json.dumps(manifest, indent=1) + "\n")
    os.replace(temporary, target)


def read_manifest(run: Path) -> dict[str, Any]:
    """Read ``run.json``; raises UnreadableRun when it is missing, damaged or too new."""
    target = run / layout.MANIFEST
    try:
        manifest = json.loads(target.read_text())
    except FileNotFoundError:
        raise UnreadableRun(f"{run} holds no {layout.MANIFEST}: it is no run directory") from None
    except (OSError, ValueError) as error:
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
    return StoredRun(
        id=folder.name,
        path=folder,
        started=str(manifest.get("started", "")),
        command=tuple(manifest.get("command", ())),
        exit_code=manifest.get("exit_code"),
        steps=manifest.get("steps"),
        size_bytes=sum(f.stat().st_size for f in _files(folder)),
    )


def _files(folder: Path) -> Sequence[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _alive(folder: Path) -> bool:
    try:
        manifest = read_manifest(folder)
    except UnreadableRun:
        return False
    if manifest.get("exit_ns") is not None:
        return False
    launcher = manifest.get("launcher_pid")
    return isinstance(launcher, int) and Path(f"/proc/{launcher}").exists()
