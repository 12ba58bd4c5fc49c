"""A second start directory and a second home for a trial, where nothing can be mounted.

Folders are real, so files can be made, replaced and removed in them; small files are copied;
large ones, and folders full of files, are links to the originals, which can be read. Landlock
forbids to write through them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hotlap.launch.containment import remove, within

_COPIED_BYTES: Final = 64 << 20
"""Larger files are linked."""
_ALL_BYTES: Final = 1 << 30
_DATA: Final = 200
"""A folder with more files holds data: they are linked, so that reading them costs the same."""
_MOST: Final = 20_000
_LINKED: Final = frozenset((".hotlap", ".git", "node_modules", "__pycache__"))
_CACHES: Final = frozenset(
    ".cache .config .triton .torch .keras .nv .matplotlib .wandb .mlflow .aim .clearml".split()
)
"""Folders of a home that libraries write to."""
_MOVED: Final = ("_HOME", "_DIR", "_CACHE", "_PATH")
_NOT_MOVED: Final = ("VIRTUAL", "CONDA", "PYENV", "JAVA", "CUDA", "LD_", "MANPATH")


@dataclass(frozen=True)
class Copies:
    """Where a trial runs. root: what is removed at its end."""

    root: Path
    start: Path
    argv: list[str]
    environ: dict[str, str]


@contextlib.contextmanager
def copies(argv: Sequence[str], environ: Mapping[str, str], start: Path) -> Iterator[Copies]:
    """Make the copies for a trial, and remove them at its end.

    argv, environ: words and variables that name the start directory or home get the copy's name.
    Raises OSError when there is no room.
    """
    root = Path(tempfile.mkdtemp(prefix=f".hotlap-trial-{os.getpid()}-"))
    try:
        home = os.path.realpath(environ.get("HOME") or os.path.expanduser("~"))
        tree = _Tree(root / "m", os.path.realpath(start), home)
        tree.make()
        (root / "tmp").mkdir()
        changed = dict(environ)
        for name, value in environ.items():
            if name == "PYTHONPATH":
                parts = value.split(os.pathsep)
                changed[name] = os.pathsep.join(tree.moved(one) for one in parts)
            elif name.endswith(_MOVED) and not name.startswith(_NOT_MOVED):
                changed[name] = tree.moved(value)
        changed.update(HOME=tree.moved(home), TMPDIR=str(root / "tmp"))
        moved = Path(tree.moved(tree.start))
        changed["PWD"] = str(moved)
        words = [argv[0], *(tree.moved(word) for word in argv[1:])]
        yield Copies(root, moved, words, changed)
    finally:
        remove(str(root))


class _Tree:
    """The copies below ``root``: a path /a/b has its copy at root/a/b, so ``..`` means the same."""

    def __init__(self, root: Path, start: str, home: str) -> None:
        self.start = start
        self._root = str(root)
        self._home = home
        self._bytes = 0
        self._made = 0

    def moved(self, path: str) -> str:
        """Return the copy's name of a path in the start directory or home; others stay."""
        if any(within(path, tree) and tree != "/" for tree in (self.start, self._home)):
            return self._root + path
        return path

    def make(self) -> None:
        """Make the start directory, home, and the folders on the way to them."""
        way = {"/"}
        for path in (self.start, self._home):
            way |= {str(one) for one in Path(path).parents}
        for folder in sorted(way, key=len):
            if not within(folder, self.start):
                self._link_all(folder, way)
        self._copy(self.start)
        if not within(self._home, self.start):
            self._link_all(self._home, {*way, self.start})

    def _link_all(self, folder: str, way: set[str]) -> None:
        """Make a folder whose entries are links, but those that have copies of their own."""
        os.makedirs(self._root + folder, exist_ok=True)
        for entry in self._entries(folder):
            if entry.path in way or entry.path in (self.start, self._home):
                continue
            if folder == self._home and entry.name in _CACHES and entry.is_dir():
                self._copy(entry.path)
            else:
                self._link(entry.path)

    def _copy(self, folder: str) -> None:
        """Make a folder with copies of its small files."""
        os.makedirs(self._root + folder, exist_ok=True)
        entries = self._entries(folder)
        holds_data = len(entries) > _DATA
        for entry in entries:
            self._made += 1
            is_link = entry.name in _LINKED or self._made > _MOST
            if entry.is_symlink():
                target = os.readlink(entry.path)
                with contextlib.suppress(FileExistsError):
                    os.symlink(target, self._root + entry.path)
            elif is_link or not (entry.is_dir() or entry.is_file()):
                self._link(entry.path)
            elif entry.is_dir():
                if os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                    self._link(entry.path)
                else:
                    self._copy(entry.path)
            elif holds_data or not self._fits(entry.stat().st_size):
                self._link(entry.path)
            else:
                shutil.copy2(entry.path, self._root + entry.path)

    def _fits(self, size: int) -> bool:
        if size > _COPIED_BYTES or self._bytes + size > _ALL_BYTES:
            return False
        self._bytes += size
        return True

    def _link(self, path: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.symlink(path, self._root + path)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                return [one for one in found if not self._root.startswith(one.path + "/")]
        except OSError:
            return []
