"""A plain run loads nothing of what only a trial needs."""

from __future__ import annotations

import subprocess
import sys

ASK = """
import sys
import hotlap.inject.session
print(*[name for name in sys.modules if "conditions" in name or "collector" in name])
"""


def test_conditions_are_not_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, check=True)
    assert done.stdout.split() == []
