"""What process tests share: a process that runs scripts bare, and fewer cores than there are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from process.style_runs import Bare


@pytest.fixture(scope="session")
def forked() -> Iterator[Bare]:
    """Return a place where scripts train alone, at little cost."""
    made = Bare()
    yield made
    made.close()


@pytest.fixture
def on_one_core() -> tuple[str, ...]:
    """Return what to put before a command, so that it may use one core only."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("no affinity on this system")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("only one core is allowed here, so it cannot be narrowed")
    code = (
        "import os, sys; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    return (sys.executable, "-c", code)


@pytest.fixture
def half_a_core() -> Iterator[Path]:
    """A real control group with a quota of half a core, removed afterwards."""
    for base, files in (
        (Path("/sys/fs/cgroup"), {"cpu.max": "50000 100000"}),
        (Path("/sys/fs/cgroup/cpu"), {"cpu.cfs_quota_us": "50000"}),
    ):
        group = base / f"hotlap-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        # Version 1 has an ordinary folder where version 2 has its topmost group.
        if not all((group / name).exists() for name in ("cgroup.procs", *files)):
            group.rmdir()
            continue
        try:
            for name, text in files.items():
                (group / name).write_text(text)
        except OSError:
            group.rmdir()
            continue
        yield group
        group.rmdir()
        return
    pytest.skip("no control group with a CPU quota can be made here (needs root)")
