"""Words to a command, and a command to an executable."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hotlap.errors import WrongUse
from hotlap.launch.command import complete, resolve, script_of


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    executable(tmp_path / "bin" / "python")
    executable(tmp_path / "bin" / "torchrun")
    return {"PATH": str(tmp_path / "bin")}


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["train.py", "--lr", "1"], ["python", "train.py", "--lr", "1"]),
        (["./a b/train.py"], ["python", "./a b/train.py"]),
        (["-m", "pkg.train"], ["python", "-m", "pkg.train"]),
        (["--", "train.py", "--", "x"], ["python", "train.py", "--", "x"]),
        (["torchrun", "train.py"], ["torchrun", "train.py"]),
        (["python", "-E", "train.py"], ["python", "-E", "train.py"]),
        (["./train"], ["./train"]),
        (["train.pyc"], ["train.pyc"]),
    ],
)
def test_complete(words: list[str], command: list[str], environ: dict[str, str]) -> None:
    assert complete(words, environ) == command


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "No command was given"),
        (["--"], "No command was given"),
        ([""], "is empty"),
        (["-c", "print(1)"], "python -c"),
        (["--steps", "3"], "before the command"),
    ],
)
def test_no_command(words: list[str], says: str, environ: dict[str, str]) -> None:
    with pytest.raises(WrongUse, match=says) as caught:
        complete(words, environ)
    assert caught.value.exit_code == 2


def test_python3_and_our_own_are_the_fall_backs(tmp_path: Path) -> None:
    executable(tmp_path / "three" / "python3")
    assert complete(["a.py"], {"PATH": str(tmp_path / "three")}) == ["python3", "a.py"]
    assert complete(["a.py"], {"PATH": str(tmp_path)}) == [sys.executable, "a.py"]


def test_resolve_is_absolute_and_keeps_links(tmp_path: Path, environ: dict[str, str]) -> None:
    assert resolve(["python"], environ) == str(tmp_path / "bin" / "python")
    link = tmp_path / "venv-python"
    link.symlink_to(tmp_path / "bin" / "python")
    assert resolve([str(link)], environ) == str(link)
    assert resolve([os.path.relpath(link)], environ) == str(link)


def test_resolve_says_why_not(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_text("x")
    for word, says in [
        ("nosuch", "Command not found: 'nosuch' is in no folder of PATH"),
        ("plain", "write ./ before it"),
        ("./plain", "chmod"),
        ("./bin", "is a directory"),
        ("./nosuch", "no such file"),
    ]:
        with pytest.raises(WrongUse, match=says):
            resolve([word], environ)


@pytest.mark.parametrize(
    ("command", "script"),
    [
        (["python", "train.py", "--lr", "1"], "train.py"),
        (["/opt/py/bin/python3.11", "train.py"], "train.py"),
        (["python", "-m", "train"], None),
        (["python"], None),
        (["torchrun", "train.py"], None),
    ],
)
def test_script_of(command: list[str], script: str | None) -> None:
    assert script_of(command) == script
