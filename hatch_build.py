"""Compiles the hooks into the wheel, where a compiler and Python's headers are at hand.

Without them the wheel is one for any Python, and hotlap does the same with its hooks in Python,
which cost a training more time. ``HOTLAP_PURE=1`` asks for that. The interpreter's own settings
say how to compile; nothing is downloaded.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src", "hotlap", "fast")
FLAGS = ("-O2", "-fPIC", "-fvisibility=hidden")


class CompiledHooks(BuildHookInterface):  # type: ignore[type-arg]  # hatchling names no settings
    """Builds ``hotlap.fast._hooks``: in place when hotlap is installed editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say so in the wheel's name; leave the wheel pure if that is not possible."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        name = f"_hooks{sysconfig.get_config_var('EXT_SUFFIX')}"
        editable = version == "editable"
        into = root / FOLDER if editable else root / "build" / "compiled"
        because = obstacle() or compile_hooks(root / FOLDER, into / name)
        if because is not None:
            self.app.display_warning(f"hotlap's hooks are not compiled: {because}")
            (into / name).unlink(missing_ok=True)
            return
        if editable:
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"][str(into / name)] = f"hotlap/fast/{name}"


def obstacle() -> str | None:
    """Return why there is no use in trying to compile; None if there is."""
    if os.environ.get("HOTLAP_PURE", "0") not in ("", "0"):
        return "HOTLAP_PURE asks for it"
    if sys.implementation.name != "cpython" or os.name != "posix":
        return f"they are for CPython on POSIX, not {sys.implementation.name} on {os.name}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "they are not for a Python without its global lock"
    if not any((folder / "Python.h").is_file() for folder in headers()):
        return f"Python.h is not in {' or '.join(map(str, headers()))}"
    return None


def headers() -> tuple[Path, ...]:
    """Return the folders of Python's headers."""
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys(Path(paths[name]) for name in ("include", "platinclude")))


def compile_hooks(source: Path, target: Path) -> str | None:
    """Compile the one translation unit into a loadable module; return why it failed, else None."""
    linking = shlex.split(os.environ.get("LDSHARED") or sysconfig.get_config_var("LDSHARED") or "")
    if not linking:
        return "Python does not tell how it links modules (LDSHARED)"
    if os.environ.get("CC"):
        linking = [*shlex.split(os.environ["CC"]), *linking[1:]]
    target.parent.mkdir(parents=True, exist_ok=True)
    # Under another name at first: a process may be using the one that is there.
    made = target.with_name(f".{os.getpid()}.{target.name}")
    command = [*linking, *FLAGS, *(f"-I{folder}" for folder in headers())]
    command += [str(source / "_hooks.c"), "-o", str(made)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if done.returncode:
        made.unlink(missing_ok=True)
        return f"{shlex.join(command)}: {done.stderr.strip()[-2000:]}"
    os.replace(made, target)
    return None
