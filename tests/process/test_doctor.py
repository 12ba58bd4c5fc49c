"""``hotlap doctor`` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def doctor(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the verb in a process of its own, with variables of the environment changed."""
    return subprocess.run(
        [sys.executable, "-m", "hotlap", "doctor", *words],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
        env={**os.environ, "COLUMNS": "80", **changes},
    )


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the checks of a document by their names."""
    return {check["name"]: check for check in document["checks"]}


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """Return a Python without torch: this one, isolated from its site-packages."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_the_page_and_the_file(tmp_path: Path) -> None:
    file = tmp_path / "doctor.json"
    done = doctor(str(tmp_path), "--json", str(file), "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 80
    document = json.loads(file.read_text())
    assert document["format"] == 1
    squeezed = "".join(done.stdout.split())
    for check in document["checks"]:
        assert "".join(check["seen"].split()) in squeezed
    assert by_name(document)["storage"]["seen"].startswith(f"{tmp_path}: ")
    assert document["machine"]["cores_visible"] == os.cpu_count()
    assert [disk["path"] for disk in document["machine"]["disks"]] == [str(tmp_path)]


def test_json_alone_on_stdout_and_a_python_without_torch(bare: str) -> None:
    done = doctor("--json", "-", "--python", bare)
    assert done.returncode == 0, done.stderr
    checks = by_name(json.loads(done.stdout))
    assert checks["torch"]["state"] == "absent"
    assert checks["torch threads"]["state"] == "unknown"
    assert checks["decoders"]["state"] == "absent"


def test_the_first_python_on_path_is_asked(bare: str) -> None:
    folder = os.path.dirname(bare)
    done = doctor("--json", "-", PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
    checks = by_name(json.loads(done.stdout))
    assert checks["torch"]["state"] == "absent"
    assert "first on PATH" in checks["python"]["consequence"]


def test_a_torch_that_dies_is_told_in_words(tmp_path: Path) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = doctor("--json", "-", "--python", sys.executable, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    torch = by_name(json.loads(done.stdout))["torch"]
    assert torch["state"] == "limited"
    assert "SIGILL" in torch["seen"]


def test_wrong_use(tmp_path: Path, bare: str) -> None:
    no_python = doctor("--python", str(tmp_path / "none"))
    assert no_python.returncode == 2
    assert "no program of this name" in no_python.stderr
    no_folder = doctor("--json", str(tmp_path / "none" / "x.json"))
    assert no_folder.returncode == 2
    assert "its folder does not exist" in no_folder.stderr
    no_file = doctor("--json", str(tmp_path), "--python", bare)
    assert no_file.returncode == 2
    assert "cannot be written" in no_file.stderr
    assert doctor("--no-such-option").returncode == 2


def test_one_core_by_affinity(on_one_core: tuple[str, ...], bare: str) -> None:
    words = [*on_one_core, sys.executable, "-m", "hotlap", "doctor", "--json", "-"]
    done = subprocess.run([*words, "--python", bare], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    cores = by_name(document)["cores"]
    assert cores["state"] == "limited"
    assert "1 allowed by affinity" in cores["seen"]
    assert "OMP_NUM_THREADS=1" in cores["fix"]
    assert document["machine"]["cores_allowed"] <= 1


@pytest.mark.root
def test_a_real_quota(half_a_core: Path, bare: str) -> None:
    code = (
        "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "while time.process_time() < 0.3: pass\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'hotlap', *sys.argv[2:]])"
    )
    words = [str(half_a_core / "cgroup.procs"), "doctor", "--json", "-", "--python", bare]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    document = json.loads(done.stdout)
    assert document["machine"]["cores_quota"] == 0.5
    assert document["machine"]["cores_allowed"] == 0.5
    cores = by_name(document)["cores"]
    assert cores["state"] == "limited"
    assert "a quota of 0.5 cores" in cores["seen"]
    # Whether it was stopped depends on how busy the machine is; that it is counted does not.
    assert by_name(document)["cpu throttling"]["seen"].startswith("stopped in ")
