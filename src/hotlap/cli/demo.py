"""``hotlap demo``: the main job on real photographs, from a folder that anyone can look into.

The folder gets an ordinary training script and a few hundred JPEGs, cut from the photographs
that come with hotlap; then the script is run exactly as ``hotlap run train.py`` runs it, and
tuned as ``hotlap tune train.py`` tunes it.
"""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

import hotlap
from hotlap.errors import DONE, INTERRUPTED, NotMeasurable, OurFault, WrongUse

FOLDER: Final = Path("hotlap-demo")
SCRIPT: Final = "train.py"
PHOTOS: Final = "photos"
TUNING_S: Final = 360.0
"""Wall time of the tuning, so that the whole demo takes less than eight minutes."""
CUT: Final = "Cut by hotlap demo from the photographs listed in its LICENSE.md.\n"
NEEDED: Final = {"torch": "torch", "numpy": "numpy", "PIL": "pillow"}
"""Module that the training imports: the package that brings it."""


@click.command(
    name="demo",
    help="Measure a training on real photographs that hotlap brings, find out why it is slow, and "
    "tune it: about six minutes.",
)
@click.option("--quick", is_flag=True, help="Measure it only: a quarter of a minute.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=FOLDER)
def command(quick: bool, folder: Path) -> int:
    """Fill FOLDER (default ``hotlap-demo``), train there under ``hotlap run``, and tune it."""
    python = training_python()
    prepare(folder, python)
    code = measure(folder, python)
    if code == DONE and not quick:
        code = improve(folder, python)
    if code == DONE:
        _say_what_next(folder, python)
    return code


def measure(folder: Path, python: str) -> int:
    """Run the training of a prepared folder, measured.

    Returns 0, or 130 after Ctrl-C; raises NotMeasurable when the training failed.
    """
    from hotlap.cli.run import train

    click.echo(f"\n$ {_typed(folder, 'run', python)}\n")
    sys.stdout.flush()
    start = Path.cwd()
    os.chdir(folder)
    try:
        code = train(_words(python), output=None, quiet=False, show_from=start)
    finally:
        os.chdir(start)
    if code in (INTERRUPTED, -2):
        return INTERRUPTED
    if code != 0:
        raise NotMeasurable(
            f"the demo's training ended with exit code {code}; its own output is above, "
            f"and it can be run alone: cd {folder} && {' '.join([python, SCRIPT])}"
        )
    return DONE


def improve(folder: Path, python: str) -> int:
    """Diagnose and tune the training of a prepared folder, and print before and after.

    Returns what ``hotlap tune`` returns.
    """
    from hotlap.cli.tune import DEFAULT_PLAN, Files, tune_command
    from hotlap.tune.session import Order

    click.echo(f"\n$ {_typed(folder, 'tune', python)}\n")
    sys.stdout.flush()
    start = Path.cwd()
    os.chdir(folder)
    try:
        order = Order(budget_s=TUNING_S)
        return tune_command(tuple(_words(python)), order, Files(Path(DEFAULT_PLAN)))
    finally:
        os.chdir(start)


def _say_what_next(folder: Path, python: str) -> None:
    click.echo(
        f"\nThe demo's script, photographs and records are in {folder}, and nowhere else. Try:\n"
        f"  {_typed(folder, 'run --plan hotlap.plan.toml', python)}\n"
        "      the same training under the plan that was found, if one was\n"
        "  hotlap run YOUR_SCRIPT.py\n"
        "      your own training, unchanged\n"
        "  hotlap tune YOUR_SCRIPT.py\n"
        "      what would make it faster, tried and proven"
    )


def _words(python: str) -> list[str]:
    return [SCRIPT] if python == shutil.which("python") else [python, SCRIPT]


def _typed(folder: Path, verb: str, python: str) -> str:
    return f"cd {folder} && hotlap {verb} {' '.join(_words(python))}"


def training_python() -> str:
    """Return the interpreter for the training: the first ``python`` on PATH, else our own.

    Raises NotMeasurable with the line to type when neither has what the training imports.
    """
    first = shutil.which("python")
    lacks: dict[str, list[str]] = {}
    for python in (first, sys.executable):
        if python is None or python in lacks:
            continue
        lacks[python] = missing_packages(python)
        if not lacks[python]:
            if python != first and first is not None:
                click.echo(f"{first} has no {', no '.join(lacks[first])}; using {python}")
            return python
    python, packages = next(iter(lacks.items()))
    raise NotMeasurable(
        f"the demo trains with {python}, which has no {', no '.join(packages)}; "
        f"install: {python} -m pip install {' '.join(packages)}"
    )


def missing_packages(python: str) -> list[str]:
    """Return the packages that the training needs and an interpreter cannot find.

    python: its path; all packages are missing when it does not start.
    """
    ask = (
        "import importlib.util as u, json, sys;"
        "print(json.dumps([m for m in sys.argv[1:] if u.find_spec(m) is None]))"
    )
    try:
        # In another directory, because the interpreter also looks for modules where it starts.
        answer = subprocess.run(
            [python, "-c", ask, *NEEDED],
            capture_output=True,
            text=True,
            check=True,
            cwd=os.sep,
        )
        return [NEEDED[module] for module in json.loads(answer.stdout)]
    except (OSError, subprocess.CalledProcessError, ValueError):
        return list(NEEDED.values())


def prepare(folder: Path, python: str) -> None:
    """Put the training script and the photographs into a folder, unless they are there.

    A script that somebody changed stays as it is. Raises WrongUse when the folder cannot be
    written, or holds photographs that are not the demo's.
    """
    source = example_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / SCRIPT
        if not script.exists():
            shutil.copyfile(source / SCRIPT, script)
        elif not filecmp.cmp(source / SCRIPT, script, shallow=False):
            click.echo(f"{script} differs from the one that hotlap brings; it is used as it is.")
        if not (folder / PHOTOS).exists():
            cut_photos(source, folder, python)
    except OSError as error:
        raise WrongUse(
            f"cannot write the demo's files into {folder}: {error.strerror or error}; "
            "name another folder: hotlap demo FOLDER"
        ) from error
    if not (folder / PHOTOS / "README").is_file():
        raise WrongUse(
            f"{folder / PHOTOS} exists and was not made by this demo; "
            "name another folder: hotlap demo FOLDER"
        )


def cut_photos(source: Path, folder: Path, python: str) -> None:
    """Cut the photographs into ``folder/photos``, which appears only when it is complete."""
    click.echo(f"Cutting photographs into {folder / PHOTOS} ...")
    unfinished = Path(tempfile.mkdtemp(prefix=".cutting-", dir=folder))
    try:
        photos = unfinished / PHOTOS
        done = subprocess.run(
            [python, str(source / "make_photos.py"), "--to", str(photos)],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            last = (done.stderr.strip() or "no message").splitlines()[-1]
            raise NotMeasurable(f"{python} could not cut the demo's photographs: {last}")
        (photos / "README").write_text(CUT)
        photos.rename(folder / PHOTOS)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def example_folder() -> Path:
    """Return the folder with the example's files: inside a wheel, or beside ``src``."""
    package = Path(hotlap.__file__).resolve().parent
    for base in (package, package.parent.parent):
        folder = base / "examples" / "photos"
        if (folder / SCRIPT).is_file():
            return folder
    raise OurFault(f"the demo's files are missing from this installation of hotlap ({package})")
