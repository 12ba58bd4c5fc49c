"""A stage for the door: interpreters started with and without it, and what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hotlap

PACKAGE = Path(hotlap.__file__).parent
SITE = PACKAGE / "inject" / "site"


@dataclass(frozen=True)
class Outcome:
    """What a process left behind."""

    code: int
    out: str
    err: str


class Stage:
    """A project folder, a run directory, a handoff.

    path: folders for PYTHONPATH, behind the door's own.
    """

    def __init__(self, folder: Path, path: tuple[Path, ...] = ()) -> None:
        self.folder = folder
        self.run_dir = folder / "run"
        self.run_dir.mkdir()
        self.path = path
        self.handoff = folder / "handoff.json"
        self.options: tuple[str, ...] = ()
        self.environ: dict[str, str] = {}
        self.hand_over(
            {
                "format": 1,
                "run_dir": str(self.run_dir),
                "package_dir": str(PACKAGE),
                "start_dir": str(folder),
                "started_ns": 0,
            }
        )

    def hand_over(self, content: Any) -> None:
        """Write the handoff: bytes as they are, anything else as JSON."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.handoff.write_bytes(data)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, *words: str, door: bool, python: str = sys.executable) -> Outcome:
        """Run an interpreter in the project folder, with the door or without it."""
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        environ |= {"PYTHONDONTWRITEBYTECODE": "1", **self.environ}
        folders = [str(SITE)] * door + [str(one) for one in self.path]
        if folders:
            environ["PYTHONPATH"] = os.pathsep.join(folders)
        if door:
            environ["HOTLAP_HANDOFF"] = str(self.handoff)
        done = subprocess.run(
            [python, *self.options, *words],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def same(self, *words: str, python: str = sys.executable) -> Outcome:
        """Assert that the door changes nothing that can be seen, and return what is seen."""
        bare = self.start(*words, door=False, python=python)
        with_door = self.start(*words, door=True, python=python)
        assert with_door == bare
        return bare

    def seen(self) -> list[dict[str, Any]]:
        """Return what the door noted."""
        path = self.run_dir / "seen.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
