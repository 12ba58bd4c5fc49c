"""``hotlap tune`` and ``hotlap run --plan`` as a shell sees them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotlap.machine.facts import machine_facts
from hotlap.tune.fingerprint import hardware
from hotlap.tune.plan_file import read, write
from hotlap.values.finding import Bounds
from hotlap.values.plan import Choice, Plan

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "tuned.py"
HOTLAP = (sys.executable, "-m", "hotlap")
PLAN = "hotlap.plan.toml"
PATIENCE_S = 300
# Eight samples of 4 ms in a step: two workers halve it, whatever else the machine does.
TUNE = ("tune", "--budget", "150", "--steps", "40", "--json", "tuning.json")
BLOCKED = ("train.py", "--item-ms", "4", "--rows", "400", "--epochs", "3")
SHORT = ("train.py", "--anomaly", "--rows", "400", "--epochs", "1", "--exit-code", "3")
THREADS = Choice(
    "intra_op_threads",
    2,
    "rounding",
    Bounds(None, None),
    None,
    "",
    {"OMP_NUM_THREADS": "2"},
)
ANOMALY = Choice("anomaly_mode", False, "identical", Bounds(None, None), None, "")
pytestmark = pytest.mark.slow


def environ(**more: str) -> dict[str, str]:
    """Return our variables, with the Python of the tests first on PATH and one thread."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **more}


def hotlap(
    folder: Path, *words: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run hotlap in a folder."""
    return subprocess.run(
        [*HOTLAP, *words],
        cwd=folder,
        env=env or environ(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )


def start_folder(folder: Path) -> Path:
    """Make a start directory with a script."""
    folder.mkdir()
    shutil.copy(SCRIPT, folder / "train.py")
    return folder


def begun(folder: Path, until: str) -> subprocess.Popen[str]:
    """Begin to tune, and wait for a file of the tuning to have something in it."""
    ours = subprocess.Popen(
        [*HOTLAP, *TUNE, *BLOCKED],
        cwd=folder,
        env=environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + PATIENCE_S
    while not any(one.stat().st_size for one in folder.glob(f".hotlap/runs/*/{until}")):
        if ours.poll() is not None:
            said = ours.communicate()[1]
            if "--allow-writes" in said:
                pytest.skip(said)
            pytest.fail(said)
        assert time.monotonic() < end, f"no {until} was written"
        time.sleep(0.2)
    return ours


def processes_in(folder: Path) -> list[str]:
    """Return the commands of processes that stand in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if os.readlink(path) == str(folder):
                found.append((path.parent / "cmdline").read_text())
        except OSError:
            continue
    return found


def left_in(folder: Path) -> set[str]:
    """Return what lies in a folder besides the script."""
    return {path.name for path in folder.iterdir()} - {"train.py"}


@dataclass(frozen=True)
class Tuned:
    """A tuning that Ctrl-C ended, and what --resume made of it."""

    folder: Path
    code: int
    left: set[str]
    running: list[str]
    runs: str
    resumed: subprocess.CompletedProcess[str]

    @property
    def json(self) -> dict[str, Any]:
        """Return the JSON form of the resumed tuning."""
        assert self.resumed.returncode == 0, self.resumed.stderr
        form: dict[str, Any] = json.loads((self.folder / "tuning.json").read_text())
        return form


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    """Return a tuning of a training that waits for its loader, ended by Ctrl-C and resumed."""
    folder = start_folder(tmp_path_factory.mktemp("tuned") / "start")
    ours = begun(folder, "arms.jsonl")
    try:
        ours.send_signal(signal.SIGINT)
        ours.communicate(timeout=PATIENCE_S)
    finally:
        ours.kill()
    (kept,) = folder.glob(".hotlap/runs/*/arms.jsonl")
    left, running, runs = left_in(folder), processes_in(folder), kept.read_text()
    resumed = hotlap(folder, *TUNE, "--resume", *BLOCKED)
    return Tuned(folder, ours.returncode, left, running, runs, resumed)


def test_ctrl_c_leaves_no_process_and_no_plan(tuned: Tuned) -> None:
    assert tuned.code == 130
    assert tuned.running == []
    assert tuned.left <= {".hotlap", "tuning.json"}


def test_a_resumed_tuning_goes_on_with_what_was_measured(tuned: Tuned) -> None:
    (kept,) = tuned.folder.glob(".hotlap/runs/*/arms.jsonl")
    assert kept.read_text().startswith(tuned.runs)
    assert len(kept.read_text()) > len(tuned.runs)
    assert tuned.resumed.stderr.startswith("hotlap: run "), "it was diagnosed once more"
    first = json.loads(tuned.runs.splitlines()[0])
    assert tuned.json["runs"][0]["spans_ns"] == first["spans_ns"]


def test_what_helps_is_in_the_plan(tuned: Tuned) -> None:
    form = tuned.json
    assert form["comparison"]["word"] == "faster"
    assert form["comparison"]["ratio"]["low"] > 1.03
    knobs = {one["knob"]: one for one in form["plan"]}
    assert knobs["loader_workers"]["value"] >= 1, form["rejected"]
    assert knobs["loader_workers"]["acted"] is True
    classes = {one["numerics"] for one in form["plan"]}
    assert classes <= {"identical", "rounding", "resampled"}
    (plan,) = read(tuned.folder / PLAN)
    assert plan.settings == {one["knob"]: one["value"] for one in form["plan"]}
    assert str(tuned.folder) not in (tuned.folder / PLAN).read_text()


def test_nothing_else_is_left(tuned: Tuned) -> None:
    assert left_in(tuned.folder) == {".hotlap", "tuning.json", PLAN}
    assert processes_in(tuned.folder) == []


def test_the_page_says_how_to_use_the_plan(tuned: Tuned) -> None:
    page = " ".join(tuned.resumed.stdout.split())
    assert f"hotlap run --plan {PLAN} {' '.join(BLOCKED)}" in page
    assert "loss" not in page.split("Next")[0].split()


def test_a_run_under_the_plan_says_that_it_acted(tuned: Tuned) -> None:
    bare = subprocess.run(
        [sys.executable, *BLOCKED], cwd=tuned.folder, env=environ(), capture_output=True, text=True
    )
    run = hotlap(tuned.folder, "run", "-o", "planned", "--plan", PLAN, *BLOCKED)
    assert (run.returncode, run.stdout) == (bare.returncode, bare.stdout), run.stderr
    report = hotlap(tuned.folder, "report", "planned", "--json", "-")
    told = json.loads(report.stdout)["plan"]
    assert "loader_workers" in told["acted"]
    assert told["differences"] == []
    assert told["left_out"] == {}


def hand_written(folder: Path, *choices: Choice, **elsewhere: Any) -> None:
    """Write a plan for this machine, or for one that differs from it."""
    here = {**hardware(machine_facts(())), **elsewhere}
    write(folder / PLAN, Plan(choices, None, None, here, "identical", (), "", ""))


def planned(folder: Path, env: Mapping[str, str]) -> tuple[Any, Any]:
    """Run the short script under the plan, and return how it ended and what a report says."""
    run = hotlap(folder, "run", "-o", "planned", "--plan", PLAN, *SHORT, env=env)
    report = hotlap(folder, "report", "planned", "--json", "-")
    return run, json.loads(report.stdout)["plan"]


def test_the_user_s_environment_is_not_overridden(tmp_path: Path) -> None:
    folder = start_folder(tmp_path / "start")
    hand_written(folder, ANOMALY, THREADS)
    run, told = planned(folder, environ())
    assert run.returncode == 3, run.stderr
    assert run.stdout.endswith("OMP_NUM_THREADS=1\n")
    assert list(told["acted"]) == ["anomaly_mode"]
    assert "OMP_NUM_THREADS" in told["left_out"]["intra_op_threads"]


def test_a_plan_sets_what_the_user_did_not(tmp_path: Path) -> None:
    folder = start_folder(tmp_path / "start")
    hand_written(folder, THREADS)
    free = {key: value for key, value in environ().items() if key != "OMP_NUM_THREADS"}
    run, told = planned(folder, free)
    assert run.stdout.endswith("OMP_NUM_THREADS=2\n"), run.stderr
    assert told["left_out"] == {}


def test_a_plan_of_another_machine_says_so(tmp_path: Path) -> None:
    folder = start_folder(tmp_path / "start")
    hand_written(folder, ANOMALY, THREADS, cpu_model="Another 9000")
    run, told = planned(folder, environ())
    assert run.returncode == 3, run.stderr
    assert told["differences"][0].startswith("processor: Another 9000 when it was measured, ")
    assert "depends on the machine" in told["left_out"]["intra_op_threads"]
    assert list(told["acted"]) == ["anomaly_mode"]
    text = hotlap(folder, "report", "planned").stdout
    assert "tune again" in " ".join(text.split())


def test_a_tuning_that_is_killed_leaves_no_trial_behind(tmp_path: Path) -> None:
    folder = start_folder(tmp_path / "start")
    ours = begun(folder, "diagnoses/1/trials/*/proc/*/self.rec")
    ours.kill()
    ours.communicate(timeout=PATIENCE_S)
    end = time.monotonic() + 20
    while (running := processes_in(folder)) and time.monotonic() < end:
        time.sleep(0.2)
    assert running == []
    assert left_in(folder) == {".hotlap"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tune",), "No command was given"),
        (("tune", "--fast", "train.py"), "no option of hotlap tune"),
        (("tune", "--numerics", "magic", "train.py"), "--numerics"),
        (("tune", "--resume", "train.py"), "no tuning of this command here"),
        (("tune", "--try", "warp=9", "train.py"), "name a knob and a value"),
        (("tune", "-o", "no/such/plan.toml", "train.py"), "there is no folder"),
        (("tune", "-o", "train.py", "train.py"), "is no plan"),
        (("run", "--plan", "nothing.toml", "train.py"), "there is no such file"),
    ],
)
def test_wrong_use_is_2_and_runs_nothing(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    folder = start_folder(tmp_path / "start")
    done = hotlap(folder, *words)
    assert done.returncode == 2, done.stderr
    assert says in " ".join(done.stderr.split())
    assert not list(folder.glob(".hotlap/runs/*"))
