"""Runs training scripts bare, each in a fork of this process, which has imported torch once.

Reads one JSON object a line: ``folder`` to run in, ``words`` of the command line, ``path`` of the
script or ``module`` for -m, ``first`` entry of sys.path, ``environ``. Answers each with a line.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from typing import Any

import torch


def start(asked: dict[str, Any]) -> None:
    """Be the script: in its folder, with its words, saying nothing."""
    os.chdir(asked["folder"])
    os.environ.update(asked["environ"])
    silence = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(silence, number)
    sys.argv[1:] = asked["words"]
    sys.path[0] = asked["first"]
    if asked["module"]:
        runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
    else:
        sys.argv[0] = asked["path"]
        runpy.run_path(asked["path"], run_name="__main__")


def main() -> None:
    """Fork for every line; a child ends as the script does."""
    # The first optimizer imports most of what torch imports late.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    lines = open(0, "rb", buffering=0)  # noqa: SIM115 - a child must read no line ahead
    while line := lines.readline():
        child = os.fork()
        if child == 0:
            start(json.loads(line))
            return
        os.waitpid(child, 0)
        print("done", flush=True)


if __name__ == "__main__":
    main()
