"""Compiled hooks and those in Python make the same of the same training, in every Python here."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotlap.fast import choice
from unit.pythons import python_or_skip

DRIVER = Path(__file__).with_name("hooks_driver.py")
SOURCE = Path(choice.__file__).parents[2]
SEEDS = tuple(range(1, 31))
ASK = "import json, sysconfig as s; print(json.dumps([s.get_config_var('LDSHARED'), " + (
    "s.get_config_var('EXT_SUFFIX'), s.get_paths()['include']]))"
)


def story(
    python: str, source: Path, how: str, scratch: Path, seeds: tuple[int, ...]
) -> list[dict[str, Any]]:
    """Return what the driver tells of each seed."""
    words = [python, str(DRIVER), str(source), how, str(scratch / how), *map(str, seeds)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


builds = pytest.mark.parametrize("build", ["", "-device"])


def compare(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Fail at the first difference, ``calls`` apart."""
    for one, other in zip(ours, theirs, strict=True):
        assert one["faults"] == []
        assert len(one["ticks"]) > 50
        for key in one.keys() - {"calls"}:
            assert one[key] == other[key], key


@builds
def test_state_in_c_is_state_in_python(build: str, tmp_path: Path) -> None:
    if choice.hooks is None:
        pytest.skip(f"no compiled hooks: {choice.because}")
    pure = story(sys.executable, SOURCE, f"pure{build}", tmp_path, SEEDS)
    wrapped = story(sys.executable, SOURCE, f"wrapped{build}", tmp_path, SEEDS)
    compare(pure, wrapped)
    assert [one["calls"] for one in pure] == [one["calls"] for one in wrapped]


@builds
def test_compiled_hooks_do_what_the_wrappers_do(build: str, tmp_path: Path) -> None:
    if choice.hooks is None:
        pytest.skip(f"no compiled hooks: {choice.because}")
    pure = story(sys.executable, SOURCE, f"pure{build}", tmp_path, SEEDS)
    compiled = story(sys.executable, SOURCE, f"compiled{build}", tmp_path, SEEDS)
    compare(pure, compiled)
    for one, other in zip(pure, compiled, strict=True):
        most = 0.6 if build else 0.4  # the steps that the device's clock samples are Python's
        assert other["calls"] < one["calls"] * most, "the plain case is left to Python"
    assert not build or sum(one["device"][1] for one in compiled) > 20


@pytest.mark.parametrize("version", [(3, 10), (3, 12), (3, 13), (3, 14)])
def test_they_do_so_in_other_pythons(version: tuple[int, ...], tmp_path: Path) -> None:
    python = python_or_skip(version)
    asked = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True)
    linking, suffix, include = json.loads(asked.stdout)
    if shutil.which(shlex.split(linking)[0]) is None:
        pytest.skip(f"there is no compiler {shlex.split(linking)[0]}")
    if not Path(include, "Python.h").exists():
        pytest.skip(f"there is no Python.h in {include}")
    source = tmp_path / "src"
    shutil.copytree(SOURCE / "hotlap", source / "hotlap", ignore=shutil.ignore_patterns("*.so"))
    folder = source / "hotlap" / "fast"
    command = [*shlex.split(linking), "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC"]
    command += ["-Wno-missing-field-initializers", "-Wno-cast-function-type", f"-I{include}"]
    command += [str(folder / "_hooks.c"), "-o", str(folder / f"_hooks{suffix}")]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    pure = story(python, source, "pure", tmp_path, SEEDS[:8])
    compare(pure, story(python, source, "compiled", tmp_path, SEEDS[:8]))
