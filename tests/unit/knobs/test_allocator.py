"""Allocators: what is set before a process starts, and what the process can prove."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hotlap.knobs import allocator
from hotlap.sites.patches import Patches
from unit.knobs.cases import case, offered, put_on, refused

NAME = "allocator"
linux = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD and /proc are Linux's")

CHILD = """
import os, subprocess, sys
from hotlap.knobs import allocator
from hotlap.knobs.target import Target
from hotlap.sites.patches import Patches
target = Target("allocator", sys.argv[1], Patches())
allocator.apply(target, sys.argv[1])
before = os.environ.get("LD_PRELOAD")
target.stepped()
print(target.proof()["acted"], before is not None, os.environ.get("LD_PRELOAD"))
"""


def started(value: str, environ: dict[str, str]) -> str:
    """Return what a process says that is started with an environment."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, value],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.strip()


def test_values_are_what_is_installed_and_the_c_librarys_own() -> None:
    assert offered(NAME, case()).values == ("glibc-thresholds",)
    found = {"jemalloc": "/x/libjemalloc.so.2", "tcmalloc": "/x/libtcmalloc_minimal.so.4"}
    given = case(machine={"allocators": found, "system": "Linux"})
    assert offered(NAME, given).values == ("tcmalloc", "glibc-thresholds", "jemalloc")


@pytest.mark.parametrize("name", ["LD_PRELOAD", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_what_the_user_has_set_stays(name: str) -> None:
    given = replace(case(), environ={name: "2"})
    assert name in refused(NAME, given).because
    assert allocator.environment("glibc-thresholds", {name: "2"}) == {}


def test_no_allocator_of_the_host_helps_a_gpu() -> None:
    assert "processor" in refused(NAME, case(device="cuda:0")).because


@linux
def test_thresholds_are_proven_by_the_environment(patches: Patches) -> None:
    given = allocator.environment("glibc-thresholds", {})
    assert started("glibc-thresholds", given).startswith("True False")
    assert not put_on(NAME, "glibc-thresholds", patches).proof()["acted"]


def test_a_missing_library_does_not_act(patches: Patches) -> None:
    target = put_on(NAME, "mimalloc", patches)
    assert not target.proof()["acted"]
    assert "not loaded" in target.proof()["proof"]


@linux
def test_a_library_is_loaded_and_children_are_spared(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler stands in for an allocator")
    folder = tmp_path / "lib"
    folder.mkdir()
    library = folder / "libmimalloc.so.2"
    source = tmp_path / "nothing.c"
    source.write_text("int hotlap_stands_in(void) { return 1; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    given = allocator.environment("mimalloc", {"CONDA_PREFIX": str(tmp_path)})
    assert given == {"LD_PRELOAD": f"{library}:"}
    assert started("mimalloc", given) == "True True None"
    own = {"LD_PRELOAD": str(library)}
    assert started("mimalloc", own) == f"True True {library}"
