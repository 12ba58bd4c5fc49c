"""What to start: from the words after our own options to an argument list and an executable.

A command that cannot be started is wrong use (exit code 2, ours), whatever a shell would say
(126, 127): codes other than ours are always the child's own.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hotlap.errors import WrongUse


def complete(words: Sequence[str], environ: Mapping[str, str], verb: str = "run") -> list[str]:
    """Return the command to start.

    words: what the user wrote after our own options. A leading ``--`` is dropped. A first word
        that ends in ``.py``, or is ``-m``, gets ``python`` in front; all else stays as it is.
    environ: where PATH is looked up. verb: of ours that they follow, for the words of an error.
    Raises WrongUse when there is no command, or its first word is an option.
    """
    command = list(words[1:] if words and words[0] == "--" else words)
    example = f"`hotlap {verb} train.py --epochs 3` or `hotlap {verb} torchrun … train.py`"
    if not command:
        raise WrongUse(
            f"No command was given. Write it after our own options, for example {example}."
        )
    first = command[0]
    if first == "":
        raise WrongUse(
            f"The first word of the command is empty. Name a script, for example {example}."
        )
    if first.endswith(".py") or first == "-m":
        return [python(environ), *command]
    if first.startswith("-"):
        raise WrongUse(
            f"The command begins with the option {first!r}. Options of hotlap stand before the "
            f"command; options of Python need `python` in front (`python {first} …`)."
        )
    return command


def script_of(command: Sequence[str]) -> str | None:
    """Return the script that a Python is given to run; None where that cannot be read off."""
    interpreter = Path(command[0]).name.startswith("python")
    if not interpreter or len(command) < 2 or command[1].startswith("-"):
        return None
    return command[1]


def python(environ: Mapping[str, str]) -> str:
    """Return the Python that a user would get by name.

    ``python`` when PATH has it (the bare name, so that the child sees the same ``argv[0]`` as from
    a shell), else ``python3``, else the absolute path of the interpreter that runs hotlap.
    """
    for name in ("python", "python3"):
        if _which(name, environ):
            return name
    return sys.executable


def resolve(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the absolute path of the executable that a command starts.

    Symbolic links stay: a virtual environment is known by the path of its ``python``.
    Raises WrongUse when it does not exist, is a directory or may not be executed.
    """
    word = command[0]
    found = _which(word, environ)
    if found:
        return os.path.abspath(found)
    raise WrongUse(_why_not(word, environ))


def _which(word: str, environ: Mapping[str, str]) -> str | None:
    # An unset PATH means the system's default here, as it does for exec and for a shell.
    return shutil.which(word, path=environ.get("PATH", os.defpath))


def _why_not(word: str, environ: Mapping[str, str]) -> str:
    """Say in words why a first word cannot be started."""
    path = Path(word)
    if "/" not in word:
        here = (
            " A file of that name is in this folder: write ./ before it." if path.is_file() else ""
        )
        searched = environ.get("PATH", os.defpath)
        return f"Command not found: {word!r} is in no folder of PATH ({searched}).{here}"
    if path.is_dir():
        return f"Cannot start {word!r}: it is a directory. Name a script or a program in it."
    if path.exists():
        return (
            f"Cannot start {word!r}: permission denied, the file is not executable. "
            f"Run `chmod +x {word}`, or name the interpreter before it."
        )
    return f"Cannot start {word!r}: no such file. Check the path; we are in {os.getcwd()}."
