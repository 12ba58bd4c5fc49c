"""Where hotlap and its record lie is no matter to the training: another environment, a read-only
or a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

import hotlap
from hotlap.account.summarise import summarise
from hotlap.runs.reading import read_run
from process.style_runs import HOTLAP, PATIENCE_S, SCRIPTS, environ, quick, read_log

pytestmark = pytest.mark.slow

OWN = ("hotlap", "click", "rich", "psutil", "markdown_it", "mdurl", "pygments")
"""hotlap, what it imports outside of the training, and what that imports."""


def environment(folder: Path, packages: dict[str, Path]) -> Path:
    """Make a virtual environment that has only these packages; return its python."""
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder)], capture_output=True
    )
    assert made.returncode == 0, made.stderr.decode()
    (site,) = folder.glob("lib/python*/site-packages")
    for name, path in packages.items():
        (site / name).symlink_to(path)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a python with hotlap and no torch, and one with torch and nothing of hotlap's."""
    folder = tmp_path_factory.mktemp("environments")
    installed = {path.name: path for path in Path(sysconfig.get_paths()["purelib"]).iterdir()}
    installed |= {path.name: path for path in Path(sysconfig.get_paths()["platlib"]).iterdir()}
    own = {name: path for name, path in installed.items() if name.split(".")[0] in OWN}
    own["hotlap"] = Path(hotlap.__file__).parent
    others = {
        name: path
        for name, path in installed.items()
        if not name.lower().startswith(OWN) and not name.endswith(".pth") and "editable" not in name
    }
    return environment(folder / "tool", own), environment(folder / "trainer", others)


LOOKS = """
import importlib.util, json, sys
found = [name for name in {own!r} if name != "hotlap" and importlib.util.find_spec(name)]
before = list(sys.path)
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
after = [name for name in {own!r} if name != "hotlap" and importlib.util.find_spec(name)]
print(json.dumps({{"found": found, "after": after, "path": sys.path, "same": before == sys.path,
    "loaded": [name for name in {own!r} if name != "hotlap" and name in sys.modules]}}))
"""


def test_hotlap_in_one_environment_and_torch_in_another(
    pythons: tuple[Path, Path], tmp_path: Path
) -> None:
    tool, trainer = pythons
    script = tmp_path / "looks.py"
    script.write_text(LOOKS.format(own=OWN))
    env = environ()
    env.pop("PYTHONPATH", None)
    missing = subprocess.run([tool, "-c", "import torch"], env=env, capture_output=True)
    assert b"No module named 'torch'" in missing.stderr
    alone = subprocess.run([trainer, script], env=env, capture_output=True, timeout=PATIENCE_S)
    run = tmp_path / "run"
    ours = subprocess.run(
        [tool, "-m", "hotlap", "run", "--quiet", "-o", run, trainer, script],
        env=env,
        capture_output=True,
        timeout=PATIENCE_S,
        cwd=tmp_path,
    )
    assert (ours.returncode, ours.stderr) == (0, b""), ours.stderr.decode()
    said = json.loads(ours.stdout)
    assert said == json.loads(alone.stdout)
    assert said["found"] == said["after"] == said["loaded"] == []
    assert said["same"]
    ours_alone = (str(tool.parent.parent), str(Path(hotlap.__file__).parent))
    assert not any(entry.startswith(ours_alone) for entry in said["path"])
    summary = summarise(read_run(run))
    assert [one.step.steps for one in summary.trainers] == [5]
    assert summary.faults == ()


# -- disks -----------------------------------------------------------------------------------------


def mount(folder: Path, options: str) -> Iterator[Path]:
    """Mount a file system in memory; skip where that is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs the superuser")
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """Return a folder in which nothing can be written."""
    yield from mount(tmp_path / "read-only", "ro,size=1m")


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 32 KiB."""
    yield from mount(tmp_path / "tiny", "size=32k")


def trained(folder: Path, *where: str, cwd: Path, **more: str) -> tuple[int, bytes, bytes, str]:
    """Run a plain script measured; return exit code, output, and the digest of its weights."""
    name, *rest = quick("plain.py")
    log = folder / "log.json"
    how = [*HOTLAP, *where] if where != ("alone",) else []
    done = subprocess.run(
        [*how, sys.executable, str(SCRIPTS / name), "--log", str(log), *rest],
        cwd=cwd,
        env=environ(**more),
        capture_output=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    found = read_log(log)
    assert found is not None, done.stderr.decode()
    log.unlink()
    return done.returncode, done.stdout, done.stderr, str(found["weights_sha256"])


@pytest.mark.root
def test_a_record_on_a_read_only_disk_is_one_line(read_only: Path, tmp_path: Path) -> None:
    code, out, err, digest = trained(tmp_path, "-o", str(read_only / "run"), cwd=tmp_path)
    assert (code, out, digest) == expected(tmp_path)
    assert err.startswith(b"hotlap: this run is not measured: ")
    assert err.count(b"\n") == 1


@pytest.mark.root
def test_a_read_only_start_directory_is_no_matter(read_only: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    code, out, err, digest = trained(tmp_path, cwd=read_only, XDG_STATE_HOME=str(state))
    assert (code, out, digest) == expected(tmp_path)
    assert err == b""
    (run,) = (state / "hotlap" / "runs").iterdir()
    assert summarise(read_run(run)).trainers[0].step.steps == 180


@pytest.mark.root
def test_a_full_disk_costs_the_record_and_not_the_training(tiny: Path, tmp_path: Path) -> None:
    code, out, err, digest = trained(tmp_path, "-o", str(tiny / "run"), cwd=tmp_path)
    assert (code, out, digest) == expected(tmp_path)
    assert err.count(b"\n") <= 1
    assert b"Traceback" not in err
    read_run(tiny / "run")  # what is there can be read


def expected(folder: Path) -> tuple[int, bytes, str]:
    """Return what the script does alone."""
    code, out, err, digest = trained(folder, "alone", cwd=folder)
    assert err == b""
    return code, out, digest
