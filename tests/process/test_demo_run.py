"""``hotlap demo`` as a newcomer types it; a demo that goes well is run by the wheel's test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def hotlap_demo(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``hotlap demo`` on a folder as its own process, with our interpreter first on PATH."""
    return subprocess.run(
        [sys.executable, "-m", "hotlap", "demo", str(folder)],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


def test_a_failed_training_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "README").write_text("none are needed here\n")
    (tmp_path / "train.py").write_text("import sys\nsys.exit(5)\n")
    done = hotlap_demo(tmp_path)
    assert done.returncode == 3
    assert "exit code 5" in done.stderr
    assert "YOUR_SCRIPT.py" not in done.stdout
