"""The door into a user's process: nobody can tell that it is there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from unit.inject.stage import SITE, Stage
from unit.pythons import PYTHONS, python_or_skip


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


every_python = pytest.mark.parametrize("version", PYTHONS, ids=lambda v: ".".join(map(str, v)))

LOOK = """\
import os, sys
print(sys.path, sys.argv, __name__, len(sys.meta_path) - len(
    [f for f in sys.meta_path if type(f).__name__ == "_Door"]))
print("hotlap" in sys.modules, "sitecustomize" in sys.modules)
sys.stderr.write("to stderr")
sys.exit(3)
"""


@every_python
def test_output_path_arguments_and_exit_code_are_as_without(
    stage: Stage, version: tuple[int, ...]
) -> None:
    python = python_or_skip(version)
    stage.write("train.py", LOOK.replace(', "sitecustomize" in sys.modules', ""))
    outcome = stage.same("train.py", "--lr", "1", python=python)
    assert outcome.code == 3
    assert outcome.err == "to stderr"
    noted = stage.seen()
    assert len(noted) == 1
    assert ("too_old" in noted[0]) == (version < (3, 10))


@every_python
def test_no_error_of_the_door_is_shown_whatever_it_is_handed(
    stage: Stage, version: tuple[int, ...]
) -> None:
    python = python_or_skip(version)
    good = {"format": 1, "run_dir": str(stage.run_dir), "package_dir": "/nowhere"}
    handed: list[Any] = [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 5000,
        b"null",
        b"[]",
        b'"text"',
        {},
        {"format": 2},
        {"format": "1"},
        {"format": 1},
        {**good, "run_dir": None},
        {**good, "run_dir": 5},
        {**good, "run_dir": "/nowhere/at/all"},
        {**good, "run_dir": "\0"},
    ]
    for content in handed:
        stage.hand_over(content)
        outcome = stage.start("-c", "print(1)", door=True, python=python)
        assert (outcome.code, outcome.out, outcome.err) == (0, "1\n", ""), content
    stage.handoff.unlink()
    outcome = stage.start("-c", "print(1)", door=True, python=python)
    assert (outcome.code, outcome.out, outcome.err) == (0, "1\n", "")


@pytest.mark.parametrize(
    "options", [("-I",), ("-E",), ("-S",), ("-s",), ("-O",), ("-OO",), ("-B",)]
)
def test_options_of_the_interpreter(stage: Stage, options: tuple[str, ...]) -> None:
    stage.options = options
    stage.write("train.py", "import sys\nprint(sys.argv, __debug__)\nsys.exit(4)\n")
    assert stage.same("train.py", "x").code == 4


@pytest.mark.parametrize(
    "options", [("-X", "warn_default_encoding"), ("-W", "error"), ("-X", "dev"), ("-bb",)]
)
def test_strict_interpreters_find_nothing_to_say(stage: Stage, options: tuple[str, ...]) -> None:
    stage.options = options
    outcome = stage.same("-c", "print(1)")
    assert (outcome.code, outcome.out, outcome.err) == (0, "1\n", "")
    assert len(stage.seen()) == 1


# -- the sitecustomize that the door hides --------------------------------------------------------


@every_python
def test_a_sitecustomize_that_is_hidden_runs_once(stage: Stage, version: tuple[int, ...]) -> None:
    python = python_or_skip(version)
    stage.write("theirs/sitecustomize.py", "import sys\nsys.stdout.write('theirs\\n')\nX = 5\n")
    stage.path = (stage.folder / "theirs",)
    outcome = stage.same("-c", "import sitecustomize as s; print(s.X)", python=python)
    assert outcome.out.startswith("theirs\n5\n")
    assert outcome.out.count("theirs\n") == 1


RAISES = [
    "raise ValueError('theirs')",
    "raise ImportError('theirs')",
    "import a_module_that_is_not_there",
    "raise ImportError('theirs', name='sitecustomize')",
    "this is no Python",
    "raise SystemExit(7)",
    "raise KeyboardInterrupt",
]


@pytest.mark.parametrize("version", [one for one in PYTHONS if one > (3,)])
@pytest.mark.parametrize("text", RAISES)
def test_what_it_raises_is_told_as_without_us(
    stage: Stage, version: tuple[int, ...], text: str
) -> None:
    python = python_or_skip(version)
    stage.write("theirs/sitecustomize.py", f"import sys\nsys.stdout.write('theirs')\n{text}\n")
    stage.path = (stage.folder / "theirs",)
    words = ("-c", "import sys; print('sitecustomize' in sys.modules)")
    bare = stage.start(*words, door=False, python=python)
    with_door = stage.start(*words, door=True, python=python)
    assert (with_door.code, with_door.out) == (bare.code, bare.out)
    # A traceback of the interpreter's own start may show one entry more, the last line is theirs.
    assert with_door.err.splitlines()[-1:] == bare.err.splitlines()[-1:]


def test_a_hidden_sitecustomize_in_a_zip(stage: Stage) -> None:
    stage.write("inner/sitecustomize.py", "X = 6\n")
    made = shutil.make_archive(str(stage.folder / "theirs"), "zip", stage.folder / "inner")
    stage.path = (Path(made),)
    assert stage.same("-c", "import sitecustomize; print(sitecustomize.X)").out == "6\n"


def test_the_door_twice_on_the_path_is_the_door_once(stage: Stage) -> None:
    """hotlap inside hotlap: the inner one wins, the outer one's folder is of no use."""
    stage.path = (SITE,)
    outcome = stage.start("-c", f"import sys; print(sys.path.count({str(SITE)!r}))", door=True)
    assert (outcome.code, outcome.out, outcome.err) == (0, "0\n", "")
    assert len(stage.seen()) == 1


# -- notes ----------------------------------------------------------------------------------------


def test_a_run_directory_that_vanished_is_not_made_again(stage: Stage) -> None:
    stage.run_dir.rmdir()
    outcome = stage.same("-c", "print(1)")
    assert outcome.out == "1\n"
    assert not stage.run_dir.exists()


def test_notes_stop_at_a_limit(stage: Stage) -> None:
    path = stage.run_dir / "seen.jsonl"
    path.write_bytes(b"\n" * 262_143)
    stage.start("-c", "pass", door=True)
    size = path.stat().st_size
    assert 262_144 < size < 263_000
    stage.start("-c", "pass", door=True)
    assert path.stat().st_size == size


def test_notes_are_for_the_owner_only(stage: Stage) -> None:
    before = os.umask(0)
    try:
        stage.start("-c", "pass", door=True)
    finally:
        os.umask(before)
    assert (stage.run_dir / "seen.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("train.py", "--api-key", "hunter2"), ["train.py"]),
        (("-u", "train.py", "--password=hunter2"), ["-u", "train.py"]),
        (("-W", "ignore", "-X", "utf8", "train.py", "hunter2"),
         ["-W", "ignore", "-X", "utf8", "train.py"]),
        (("-m", "timeit", "-n1", "-r1", "'hunter2'"), ["-m", "timeit"]),
        (("-c", "key = 'hunter2'", "hunter2"), ["-c"]),
        (("-", "hunter2"), ["-"]),
    ],
)  # fmt: skip
def test_of_a_command_line_only_the_program_is_noted(
    stage: Stage, words: tuple[str, ...], kept: list[str]
) -> None:
    """Arguments may be secrets, and this file is written before anybody could take them out."""
    stage.write("train.py", "")
    stage.start(*words, door=True)
    (noted,) = stage.seen()
    assert noted["argv"][1:] == kept
    assert "hunter2" not in (stage.run_dir / "seen.jsonl").read_text()


def test_workers_of_multiprocessing_are_not_noted(stage: Stage) -> None:
    stage.write(
        "train.py",
        "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('spawn').Process(target=print, args=('child',))\n"
        "    child.start()\n"
        "    child.join()\n",
    )
    outcome = stage.start("train.py", door=True)
    assert (outcome.code, outcome.out, outcome.err) == (0, "child\n", "")
    assert len(stage.seen()) == 1
