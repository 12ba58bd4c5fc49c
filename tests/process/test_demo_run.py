"""The whole of ``hotlap demo``, as a newcomer types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


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


@pytest.mark.slow
def test_the_demo_trains_reports_and_says_what_is_next(tmp_path: Path) -> None:
    folder = tmp_path / "hotlap-demo"
    done = hotlap_demo(folder)
    assert done.returncode == 0, done.stderr
    training, report = done.stdout.split("epoch 3: accuracy")
    assert "640 photographs, 10 classes" in training
    for phase in ("waiting for data", "forward", "backward", "optimizer"):
        assert phase in report
    assert "120 steps" in report
    assert "hotlap run YOUR_SCRIPT.py" in report
    assert (folder / ".hotlap" / "runs").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["hotlap-demo"]


def test_a_failed_training_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "README").write_text("none are needed here\n")
    (tmp_path / "train.py").write_text("import sys\nsys.exit(5)\n")
    done = hotlap_demo(tmp_path)
    assert done.returncode == 3
    assert "exit code 5" in done.stderr
    assert "YOUR_SCRIPT.py" not in done.stdout
