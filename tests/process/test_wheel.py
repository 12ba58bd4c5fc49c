"""The wheel is complete: built here, installed into an empty environment, used without a network.

torch, numpy and Pillow are not downloaded again: a folder of links to those of this environment
stands for the environment that a user already has. hotlap and what it depends on are installed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hotlap import __version__

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

USERS_OWN = ("torch", "numpy", "pillow")


def check(*words: str | Path, **options: object) -> str:
    """Run a command; return what it printed, or fail with all of it."""
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        **options,  # type: ignore[call-overload]  # cwd and env, as they are
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the checkout, without a build environment of its own."""
    into = tmp_path_factory.mktemp("wheel")
    check(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", into, cwd=checkout)
    (built,) = into.glob("*.whl")
    return built


def make_environment(home: Path, checkout: Path, wheel: Path) -> Path:
    """Make an environment with the wheel and what it depends on, and nothing else."""
    python = home / "bin" / "python"
    check(sys.executable, "-m", "venv", "--without-pip", home)
    constraints = checkout / "constraints.txt"
    install = [sys.executable, "-m", "uv", "pip", "install", "--python", str(python), str(wheel)]
    install += ["--constraint", str(constraints)]
    # From uv's own cache where that suffices, as it does after `make setup`.
    if subprocess.run([*install, "--offline"], capture_output=True).returncode != 0:
        check(*install)
    return home


@pytest.fixture(scope="module")
def bare(checkout: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with hotlap and without torch."""
    return make_environment(tmp_path_factory.mktemp("bare") / "venv", checkout, wheel)


@pytest.fixture(scope="module")
def with_torch(checkout: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with hotlap in which torch, numpy and Pillow are importable."""
    home = make_environment(tmp_path_factory.mktemp("whole") / "venv", checkout, wheel)
    links = tmp_path_factory.mktemp("users") / "site-packages"
    links.mkdir()
    for installed in with_dependencies(USERS_OWN).values():
        for top in tops(installed):
            (links / top.name).symlink_to(top)
    site = Path(check(home / "bin" / "python", "-c", SITE).strip())
    (site / "users_own.pth").write_text(f"{links}\n")
    return home


SITE = "import sysconfig; print(sysconfig.get_path('purelib'))"


def with_dependencies(names: tuple[str, ...]) -> dict[str, Distribution]:
    """Return the distributions of these names and of all that they require, by name."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = distribution(name)
        for line in found[name].requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def tops(installed: Distribution) -> set[Path]:
    """Return the files and folders of a distribution that lie directly in site-packages."""
    names = {path.parts[0] for path in installed.files or ()} - {"..", "__pycache__"}
    return {Path(str(installed.locate_file(name))) for name in names}


def test_every_file_of_the_package_is_in_the_wheel(checkout: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        held = set(opened.namelist())
    tracked = check("git", "ls-files", "src/hotlap", "examples/photos", cwd=checkout).splitlines()
    assert len(tracked) > 20
    expected = {
        name.replace("src/", "", 1) if name.startswith("src/") else f"hotlap/{name}"
        for name in tracked
        if (checkout / name).exists()
    }
    assert expected - held == set()
    assert {"hotlap/py.typed", "hotlap/examples/photos/train.py"} <= held
    assert f"hotlap-{__version__}.dist-info/licenses/LICENSE" in held


def can_compile() -> bool:
    compiler = shlex.split(sysconfig.get_config_var("LDSHARED"))[0]
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    return shutil.which(compiler) is not None and header.is_file()


def test_the_wheel_is_small_and_has_the_hooks_of_this_python(wheel: Path) -> None:
    assert wheel.stat().st_size < 2_000_000
    with zipfile.ZipFile(wheel) as opened:
        hooks = [name for name in opened.namelist() if name.endswith(".so")]
    if not can_compile():
        assert (hooks, wheel.name) == ([], f"hotlap-{__version__}-py3-none-any.whl")
        pytest.skip("there is no compiler here, or no Python.h; the wheel is pure")
    assert hooks == [f"hotlap/fast/_hooks{sysconfig.get_config_var('EXT_SUFFIX')}"]
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert wheel.name.startswith(f"hotlap-{__version__}-{python}-{python}-")


@pytest.mark.parametrize("environ", [{"HOTLAP_PURE": "1"}, {"CC": "/no/such/compiler"}])
def test_without_a_compiler_the_wheel_is_pure(
    environ: dict[str, str], checkout: Path, tmp_path: Path
) -> None:
    words = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    said = check(*words, cwd=checkout, env={**os.environ, **environ})
    assert "hotlap's hooks are not compiled: " in said
    (pure,) = tmp_path.glob("*.whl")
    assert pure.name == f"hotlap-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(pure) as opened:
        assert not [name for name in opened.namelist() if name.endswith(".so")]


def test_installed_hooks_are_used(bare: Path) -> None:
    if not can_compile():
        pytest.skip("there is no compiler here, or no Python.h")
    asked = "from hotlap.fast import choice; print(choice.because, choice.hooks.__file__)"
    because, place = check(bare / "bin" / "python", "-c", asked).split()
    assert because == "None"
    assert place.startswith(str(bare))


def test_without_torch_it_starts_and_says_what_to_install(bare: Path, tmp_path: Path) -> None:
    hotlap = bare / "bin" / "hotlap"
    assert check(hotlap, "--version") == f"hotlap, version {__version__}\n"
    path = f"{bare / 'bin'}:/usr/bin:/bin"
    done = subprocess.run(
        [str(hotlap), "demo"],
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3
    assert "-m pip install torch numpy pillow" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_demo_runs_from_the_wheel_without_a_network(with_torch: Path, tmp_path: Path) -> None:
    # Where no namespace can be made the demo is still the demo; only its being alone is not shown.
    alone = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        alone = []
    start = tmp_path / "empty"
    start.mkdir()
    environ = {"PATH": f"{with_torch / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    where = "import hotlap, torch; print(hotlap.__file__, torch.__file__)"
    ours, theirs = check(with_torch / "bin" / "python", "-c", where, env=environ).split()
    assert ours.startswith(str(with_torch))
    assert not theirs.startswith((str(with_torch), sysconfig.get_path("purelib")))
    said = check(*alone, with_torch / "bin" / "hotlap", "demo", "--quick", cwd=start, env=environ)
    training, report = said.split("epoch 3: accuracy")
    assert "640 photographs, 10 classes" in training
    for phase in ("waiting for data", "forward", "backward", "optimizer"):
        assert phase in report
    assert "120 steps" in report
    assert "hotlap run YOUR_SCRIPT.py" in report
    assert (start / "hotlap-demo" / ".hotlap" / "runs").is_dir()
    assert [path.name for path in start.iterdir()] == ["hotlap-demo"]


def test_no_network_is_no_network() -> None:
    alone = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let us make a namespace without a network")
    links = check(*alone, "cat", "/proc/net/dev")
    names = {line.split(":")[0].strip() for line in links.splitlines()[2:]}
    assert names <= {"lo"}
