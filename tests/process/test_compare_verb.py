"""``hotlap compare`` as a user meets it: two real runs, in text and in JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.cli import main

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, time, torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    optimizer.zero_grad()
    time.sleep(float(sys.argv[1]))
    model(torch.ones(8, 4)).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a slow run, ``slow``, and one that sleeps a quarter as long."""
    folder = tmp_path_factory.mktemp("compare")
    (folder / "train.py").write_text(SCRIPT)
    for name, pause in (("slow", "0.04"), ("fast", "0.01")):
        words = ["run", "--quiet", "-o", name, sys.executable, "train.py", pause]
        subprocess.run([sys.executable, "-m", "hotlap", *words], cwd=folder, check=True)
    return folder


def test_the_second_is_faster_and_the_page_says_where(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(["compare", "slow", "fast", "--json", "out.json"]) == 0
    page = capsys.readouterr().out
    assert "fast with slow" in page
    assert "Faster: the second makes" in page
    assert "other host code" in page
    said = json.loads(Path("out.json").read_text())
    assert said["comparison"]["word"] == "faster"
    assert 1.5 < said["comparison"]["ratio"]["low"] <= said["comparison"]["ratio"]["high"]
    assert said["before"]["id"] == "slow"
    assert said["after"]["step"]["steps"] == 40


def test_turned_round_it_is_slower(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(["compare", "fast", "slow", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["comparison"]["word"] == "slower"


def test_an_unknown_run_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(["compare", "slow", "nowhere"]) != 0
    assert "nowhere" in capsys.readouterr().err
