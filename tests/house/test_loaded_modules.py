"""What is cheap stays cheap: the modules that starting hotlap loads."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "numpy", "rich", "psutil", "pynvml", "PIL", "pandas", "asyncio"}


def loaded_after(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after some code."""
    ask = f"{code}\nimport json, sys\nsys.stderr.write(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=120
    )
    return set(json.loads(done.stderr))


@pytest.mark.parametrize(
    "code",
    [
        "import hotlap",
        "import hotlap.cli",
        "from hotlap.cli import main; assert main(['--help']) == 0",
        "from hotlap.cli import main; assert main(['--version']) == 0",
    ],
)
def test_nothing_heavy_is_loaded(code: str) -> None:
    assert loaded_after(code) & HEAVY == set()


def test_help_loads_no_verb() -> None:
    modules = loaded_after("from hotlap.cli import main; main(['--help'])")
    assert {name for name in modules if name.startswith("hotlap.cli.")} == set()


def test_a_heavy_module_would_be_seen() -> None:
    assert loaded_after("import numpy") & HEAVY == {"numpy"}
