"""Three scripts of the corpus, diagnosed end to end and compared with their labels."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CASES = ("12_parcel_damage", "47_truck_forecast", "05_tiny_resnet")


@pytest.fixture(scope="module")
def corpus(checkout: Path) -> Any:
    """Return the module that compares diagnoses with labels."""
    folder = checkout / "tests" / "corpus"
    sys.path.insert(0, str(folder))
    try:
        yield _load(folder / "diagnosed.py")
    finally:
        sys.path.remove(str(folder))


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_script_of_the_corpus_is_diagnosed(
    corpus: Any, checkout: Path, tmp_path: Path, name: str
) -> None:
    folder = checkout / "tests" / "corpus" / name
    shutil.copy(folder / "slow.py", tmp_path)
    out = tmp_path / "out.json"
    # Beside other tests the threads of one operator would wait for each other most of the time.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = corpus.measure.label(folder)["command"].split()
    done = subprocess.run(
        [sys.executable, "-m", "hotlap", "diagnose", "--json", str(out), "--", *words],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    row = corpus.compared(folder, {"said": json.loads(out.read_text())})
    # On a machine that other tests keep busy another cost may come first; it must be among them.
    assert row["any"], done.stdout
    # What the script writes in a trial stays in the trial.
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"slow.py", "out.json", ".hotlap"}
