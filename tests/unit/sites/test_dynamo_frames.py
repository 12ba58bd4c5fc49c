"""Compiled hooks make way for wrappers in Python when Dynamo builds its first graph, not before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.fast import choice

SCRIPT = Path(__file__).with_name("dynamo_moment.py")


@pytest.mark.slow
def test_what_is_traced_is_in_python(tmp_path: Path, checkout: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    python = ["function", "_Method", *["function"] * 4]
    compiled = ["Hook", "Reader", *["Hook"] * 4] if choice.hooks is not None else python
    assert told["begun"] == told["imported"] == told["made"] == compiled
    assert told["traced"] == python
    assert told["graphs"] == ["2"]
    assert told["left"] == ["function"]
    assert told["undone"] == ["True", "True", "True", "False"]
    assert told["faults"] == ["None"]
