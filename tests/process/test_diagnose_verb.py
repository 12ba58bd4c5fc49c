"""``hotlap diagnose`` as a shell sees it: what it leaves, prints, and returns."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotlap.experiment.stored import load
from hotlap.runs.reading import read_run

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "diagnosed.py"
HOTLAP = (sys.executable, "-m", "hotlap")
PATIENCE_S = 300
FULL = """
import os, sys
from hotlap.launch import kernel_mounts
kernel_mounts.have_own_mounts()
kernel_mounts.mount("small", sys.argv[1], "tmpfs", 0, "size=4m")
os.chdir(sys.argv[1])
open("train.py", "w").write("print(1)")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""A program that runs a command in a folder with a disk of 4 MiB."""
UNMOUNTABLE = """
import os, sys
from pathlib import Path
from hotlap.launch import kernel_mounts
kernel_mounts._unshare(0x10000000)
Path("/proc/sys/user/max_mnt_namespaces").write_text("0")
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A program that runs a command where no mount namespace can be had."""
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Diagnosed:
    """One diagnosis: how it ended, what it wrote, and where it stood."""

    done: subprocess.CompletedProcess[str]
    folder: Path

    @property
    def json(self) -> dict[str, Any]:
        """Return the JSON form; without one, show what was said instead."""
        path = self.folder / "diagnosis.json"
        assert path.exists(), self.done.stderr
        form: dict[str, Any] = json.loads(path.read_text())
        return form

    @property
    def run(self) -> Path:
        """Return the diagnosis' own run directory."""
        (found,) = (self.folder / ".hotlap" / "runs").iterdir()
        return found

    def because(self, what: str) -> str:
        """Return why something was not measured."""
        told = {one["what"]: one["because"] for one in self.json["not_measured"]}
        assert what in told, told
        return str(told[what])


def environ() -> dict[str, str]:
    """Return our variables, with the Python of the tests first on PATH."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}


def start_folder(folder: Path) -> Path:
    """Make a start directory with a script and an output folder of an earlier training."""
    folder.mkdir()
    shutil.copy(SCRIPT, folder / "train.py")
    (folder / "out").mkdir()
    (folder / "out" / "log.txt").write_text("an earlier training\n")
    return folder


def diagnose(folder: Path, *words: str, options: tuple[str, ...] = ()) -> Diagnosed:
    """Diagnose a command in a folder; skip where trials cannot be contained."""
    done = subprocess.run(
        [*HOTLAP, "diagnose", "--json", "diagnosis.json", *options, *words],
        cwd=folder,
        env=environ(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    if "--allow-writes" in done.stderr:
        pytest.skip(done.stderr)
    return Diagnosed(done, folder)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Diagnosed:
    """Return a diagnosis of a training whose input takes nearly all of its time."""
    folder = start_folder(tmp_path_factory.mktemp("plain") / "start")
    options = ("--html", "page.html", "--budget", "40")
    return diagnose(folder, "train.py", "--steps", "240", "--item-ms", "5", options=options)


def test_it_ends_well_and_says_so_on_stdout(plain: Diagnosed) -> None:
    assert plain.done.returncode == 0, plain.done.stderr
    assert "python train.py" in plain.done.stdout
    assert "trained" not in plain.done.stdout


def test_one_line_per_trial_where_there_is_no_terminal(plain: Diagnosed) -> None:
    lines = plain.done.stderr.splitlines()
    assert all(line.startswith("hotlap: ") for line in lines), plain.done.stderr
    assert len(lines) == 2 * len(plain.json["trials"])


def test_what_the_training_wrote_before_is_as_it_was(plain: Diagnosed) -> None:
    out = plain.folder / "out"
    assert [path.name for path in out.iterdir()] == ["log.txt"]
    assert (out / "log.txt").read_text() == "an earlier training\n"
    left = {path.name for path in plain.folder.iterdir()}
    assert left == {"train.py", "out", ".hotlap", "diagnosis.json", "page.html"}


def test_the_script_printed_into_the_trial_s_folder(plain: Diagnosed) -> None:
    texts = [path.read_text() for path in plain.run.glob("trials/*-watch/output.txt")]
    assert texts == ["trained 240\n"]


def test_a_short_run_is_watched_to_its_end(plain: Diagnosed) -> None:
    form = plain.json
    assert form["run"]["whole"] is True
    assert form["step"]["steps"] == 240
    assert form["run"]["horizon"] == {"steps": 240, "source": "observed"}


def test_the_parts_alone_were_measured(plain: Diagnosed) -> None:
    ceilings = plain.json["ceilings"]
    # Four samples of 5 ms in a step without workers: never more than 200 samples/s.
    assert 0 < ceilings["loader_per_s"] <= 200
    assert ceilings["compute_per_s"] > ceilings["loader_per_s"]
    curve = {point["workers"]: point["per_s"] for point in plain.json["workers"]["curve"]}
    assert curve[0] <= 200
    assert curve[1] <= 200
    assert plain.json["noise_floor"]["ratio"] >= 0


def test_the_input_is_what_it_names(plain: Diagnosed) -> None:
    (found,) = [one for one in plain.json["findings"] if one["phase"] == "data_wait"]
    text = (plain.folder / "train.py").read_text().splitlines()
    lines = [text[place["line"] - 1] for place in found["locations"]]
    assert any("time.sleep" in line for line in lines), lines


def test_every_trial_is_told_and_was_contained(plain: Diagnosed) -> None:
    trials = plain.json["trials"]
    assert [one["name"] for one in trials][:2] == ["watch", "ceilings"]
    assert all(one["contained"] for one in trials)
    assert all((plain.run / one["folder"]).is_dir() for one in trials)


def test_the_facts_are_kept_and_can_be_shown_again(plain: Diagnosed) -> None:
    facts = load(plain.run / "facts.json")
    assert facts.run.trainers[0].step.steps == 240
    again = subprocess.run(
        [*HOTLAP, "report", "--json", "-"],
        cwd=plain.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert json.loads(again.stdout) == plain.json, again.stderr
    assert (plain.run / "report.txt").read_text().startswith("hotlap")


def test_the_page_is_one_file(plain: Diagnosed) -> None:
    page = (plain.folder / "page.html").read_text()
    assert "<html" in page
    assert 'src="http' not in page


def test_a_run_without_steps_is_not_measurable(tmp_path: Path) -> None:
    found = diagnose(start_folder(tmp_path / "start"), "train.py", "--trouble", "never")
    assert found.done.returncode == 3
    assert found.json["verdict"]["bound"] == "unknown"
    assert found.json["findings"] == []
    assert found.because("the training")


def test_a_script_that_fails_shows_its_own_words(tmp_path: Path) -> None:
    found = diagnose(start_folder(tmp_path / "start"), "train.py", "--trouble", "crash")
    assert found.done.returncode == 3
    assert "the planted crash" in found.because("the training")
    assert "the planted crash" in found.done.stderr


def test_a_failure_in_a_later_trial_leaves_what_is_known(tmp_path: Path) -> None:
    # Shared memory is the one place that trials share: so the script can tell them apart.
    counter = Path("/dev/shm") / f"hotlap-test-{os.getpid()}-{tmp_path.name}"
    words = ("train.py", "--trouble", "second", "--counter", str(counter), "--steps", "40")
    try:
        found = diagnose(start_folder(tmp_path / "start"), *words, options=("--budget", "20"))
    finally:
        counter.unlink(missing_ok=True)
    assert found.done.returncode == 0, found.done.stderr
    assert found.json["step"]["steps"] == 40
    assert "of a later run" in found.because("ceilings.compute_per_s")
    assert found.json["ceilings"]["compute_per_s"] is None


def test_ranks_stop_together(tmp_path: Path) -> None:
    launch = ("torchrun", "--nproc-per-node", "2", "train.py", "--steps", "100000")
    # Windows of a given length are measured whatever is left of the budget.
    options = ("--budget", "25", "--steps", "20")
    found = diagnose(start_folder(tmp_path / "start"), *launch, options=options)
    assert found.done.returncode == 0, found.done.stderr
    form = found.json
    assert [one["ended_by"] for one in form["trials"]][:2] == ["itself", "itself"]
    assert [one["exit_code"] for one in form["trials"]][:2] == [0, 0]
    assert form["run"]["whole"] is False
    assert form["run"]["horizon"]["steps"] is None
    assert len(form["ranks"]) == 2
    assert form["ceilings"]["compute_per_s"] > 0


def test_ctrl_c_gives_what_is_known_and_leaves_nothing(tmp_path: Path) -> None:
    folder = start_folder(tmp_path / "start")
    words = ["--budget", "200", "--json", "diagnosis.json", "train.py", "--steps", "100000"]
    ours = subprocess.Popen(
        [*HOTLAP, "diagnose", *words],
        cwd=folder,
        env=environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _until_steps(folder, ours)
        ours.send_signal(signal.SIGINT)
        out, said = ours.communicate(timeout=PATIENCE_S)
    finally:
        ours.kill()
    assert ours.returncode == 130, said
    found = Diagnosed(subprocess.CompletedProcess((), 130, out, said), folder)
    assert found.json["step"]["steps"] > 0
    assert "Ctrl-C" in found.because("the rest of the experiments")
    assert not _processes_in(folder)
    assert (folder / "out" / "log.txt").read_text() == "an earlier training\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "No command was given"),
        (("--fast", "train.py"), "no option of hotlap diagnose"),
        (("--steps", "1", "train.py"), "--steps"),
        (("--json", "no/such/folder/d.json", "train.py"), "there is no folder"),
        (("no-such-program-at-all",), "no-such-program-at-all"),
    ],
)
def test_wrong_use_is_2_and_runs_nothing(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    done = subprocess.run(
        [*HOTLAP, "diagnose", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / ".hotlap").exists()


def test_a_rank_does_not_diagnose(tmp_path: Path) -> None:
    done = subprocess.run(
        [*HOTLAP, "diagnose", "train.py"],
        cwd=tmp_path,
        env={**environ(), "RANK": "0", "WORLD_SIZE": "2"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "diagnose torchrun" in done.stderr


@pytest.mark.root
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    folder = start_folder(tmp_path / "start")
    try:
        done = subprocess.run(
            [sys.executable, "-c", FULL, str(folder), *HOTLAP, "diagnose", "train.py"],
            capture_output=True,
            text=True,
            env=environ(),
            timeout=PATIENCE_S,
        )
    finally:
        assert (folder / "out" / "log.txt").read_text() == "an earlier training\n"
    if "Operation not permitted" in done.stderr:
        pytest.skip("this user may not mount a small disk")
    assert done.returncode == 3, done.stderr
    assert "MiB left on its disk" in done.stderr


def test_where_nothing_can_be_mounted_it_runs_in_copies(tmp_path: Path) -> None:
    folder = start_folder(tmp_path / "start")
    options = ("--budget", "20", "--json", "diagnosis.json")
    words = [*HOTLAP, "diagnose", *options, "train.py", "--steps", "60", "--item-ms", "15"]
    done = subprocess.run(
        [sys.executable, "-c", UNMOUNTABLE, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environ(),
        timeout=PATIENCE_S,
    )
    if "--allow-writes" in done.stderr or "_unshare" in done.stderr:
        pytest.skip(done.stderr)
    found = Diagnosed(done, folder)
    assert done.returncode == 0, done.stderr
    assert found.json["step"]["steps"] == 60
    places = [place for one in found.json["findings"] for place in one["locations"]]
    assert {place["file"] for place in places} == {"train.py"}
    assert [path.name for path in (folder / "out").iterdir()] == ["log.txt"]


def _until_steps(folder: Path, ours: subprocess.Popen[str]) -> None:
    """Wait until a trial has recorded steps."""
    end = time.monotonic() + PATIENCE_S
    while True:
        trials = [
            path.parents[2] for path in folder.glob(".hotlap/runs/*/trials/*/proc/*/self.rec")
        ]
        if any(one.ticks for trial in set(trials) for one in read_run(trial).processes):
            return
        assert ours.poll() is None, ours.communicate()
        assert time.monotonic() < end, "no step was recorded"
        time.sleep(0.2)


def _processes_in(folder: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if os.readlink(path) == str(folder):
                found.append((path.parent / "cmdline").read_text())
        except OSError:
            continue
    return found
