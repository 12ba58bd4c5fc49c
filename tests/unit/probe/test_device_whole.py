"""The device's clock in a whole recorder, through the real sites, by a simulated GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hotlap.runs.reading import read_run

SCRIPT = Path(__file__).with_name("device_run.py")


def test_a_training_by_real_sites(tmp_path: Path, checkout: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": 1, "id": "simulated"}')
    paths = os.pathsep.join((str(checkout / "src"), str(checkout / "tests")))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    (process,) = read_run(tmp_path).processes
    assert not process.faults
    assert process.facts["device_clock"] is None
    assert process.facts["device"] == "cuda"
    told = {one.phase: one.ns // one.steps for one in process.device_phases}
    assert told == {"forward": 300_000, "backward": 600_000, "optimizer": 100_000, "other": 0}
    assert process.device_phases[0].steps == process.facts["device_samples"] >= 20
