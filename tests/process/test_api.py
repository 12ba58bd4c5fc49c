"""The public API as a user meets it: in a script, under ``hotlap run``, and in a notebook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotlap.account.summarise import summarise
from hotlap.runs.reading import read_run

TRAINING = """
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(steps, mark=lambda: None):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
        mark()
"""


def run_python(script: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    command = [*words, sys.executable, "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def only_run(folder: Path) -> Path:
    (run,) = (folder / ".hotlap" / "runs").iterdir()
    return run


def steps_of(run: Path) -> int:
    """Return the steps of the only trainer of a run."""
    (trainer,) = summarise(read_run(run)).trainers
    return trainer.step.steps


def test_a_block_is_measured_reported_and_undone(tmp_path: Path) -> None:
    script = TRAINING + (
        "import hotlap, sys\n"
        "places = lambda: (nn.Module.__call__, torch.Tensor.item, torch.autograd.backward,\n"
        "                  torch.save, nn.Module.train, 'write' in vars(sys.stdout))\n"
        "before = places()\n"
        "with hotlap.measure() as measured:\n"
        "    train(30)\n"
        "    assert places() != before\n"
        "assert places() == before\n"
        "train(5)\n"
        "assert measured.summary.trainers[0].step.steps == 30\n"
    )
    done = run_python(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "30 steps" in done.stdout
    assert steps_of(only_run(tmp_path)) == 30
    assert "30 steps" in (only_run(tmp_path) / "report.txt").read_text()


def test_two_blocks_in_a_row_are_two_runs(tmp_path: Path) -> None:
    script = TRAINING + (
        "import hotlap\n"
        "for steps in (10, 20):\n"
        "    with hotlap.measure(output=f'run-{steps}', show=False) as measured:\n"
        "        train(steps)\n"
        "    assert measured.summary.trainers[0].step.steps == steps\n"
    )
    done = run_python(script, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_exception_passes_and_the_record_stays(tmp_path: Path) -> None:
    script = TRAINING + (
        "import hotlap\nwith hotlap.measure(show=False):\n    train(12)\n    raise KeyError('me')\n"
    )
    done = run_python(script, tmp_path)
    assert done.returncode == 1
    assert "KeyError: 'me'" in done.stderr
    assert read_run(only_run(tmp_path)).exit_code == 1
    assert steps_of(only_run(tmp_path)) == 12


def test_marks_do_nothing_where_nothing_is_measured(tmp_path: Path) -> None:
    script = TRAINING + (
        "import hotlap\n"
        "with hotlap.phase('evaluation'):\n    train(3, hotlap.step)\n"
        "try:\n    hotlap.phase('evalution').__enter__()\n"
        "except ValueError as error:\n    print(error)\n"
    )
    done = run_python(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no phase 'evalution'; there are: data_wait" in done.stdout
    assert not (tmp_path / ".hotlap").exists()


def test_a_mark_beats_the_heuristics(tmp_path: Path) -> None:
    script = TRAINING + (
        "import hotlap\n"
        "for _ in range(20):\n"
        "    train(3)\n"
        "    hotlap.step()\n"
        "    with hotlap.phase('logging'):\n        sum(range(20000))\n"
    )
    done = run_python(script, tmp_path, sys.executable, "-m", "hotlap", "run")
    assert (done.returncode, done.stderr) == (0, "")
    shown = subprocess.run(
        [sys.executable, "-m", "hotlap", "report", "--json", "-"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    step: dict[str, Any] = json.loads(shown.stdout)["step"]
    assert step["steps"] == 20
    assert step["rule"] == "explicit"
    assert step["phases"]["logging"]["ns"] > 0


def test_under_run_a_block_adds_nothing(tmp_path: Path) -> None:
    script = TRAINING + "import hotlap\nwith hotlap.measure():\n    train(10)\n"
    done = run_python(script, tmp_path, sys.executable, "-m", "hotlap", "run")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert steps_of(only_run(tmp_path)) == 10


@pytest.mark.slow
def test_a_notebook_is_measured_cell_by_cell(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the notebook packages of [dev]")
    nbclient = pytest.importorskip("nbclient", reason="needs the notebook packages of [dev]")
    cells = [
        TRAINING,
        # IPython wraps `write` of its stdout anew for each cell, so it is compared within one.
        "import hotlap, sys\nwrite = sys.stdout.write\n"
        "with hotlap.measure() as measured:\n    train(40)\n    print('trained')\n"
        "print(sys.stdout.write is write)",
        "print(measured.summary.trainers[0].step.steps)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    said = ["".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells]
    assert said[1].startswith("trained\n")
    assert "40 steps" in said[1]
    assert said[1].endswith("\nTrue\n")
    assert said[2] == "40\n"
