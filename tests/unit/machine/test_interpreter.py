"""Asking Pythons that work, crash, hang, or answer nonsense."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotlap.errors import WrongUse
from hotlap.machine import interpreter

Program = Callable[[str], str]


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Return a function that makes an executable shell script."""

    def make(body: str) -> str:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def fake_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts a torch of our own in front of the child's path."""

    def make(source: str) -> None:
        package = tmp_path / "site" / "torch"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(package.parent))

    return make


def test_this_python() -> None:
    python, because = interpreter.ask_packages(sys.executable)
    assert because is None
    assert python is not None
    assert python.version == ".".join(map(str, sys.version_info[:3]))
    assert os.path.samefile(python.prefix, sys.prefix)
    assert "pytest" in python.packages


def test_a_file_of_the_user_does_not_answer_for_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("json", "platform", "random"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')\n")
    python, because = interpreter.ask_packages(sys.executable)
    assert because is None
    assert python is not None


def test_noise_on_stdout_is_skipped(program: Program) -> None:
    script = program(f'echo hello\n"{sys.executable}" "$@"\necho bye')
    python, because = interpreter.ask_packages(script)
    assert because is None
    assert python is not None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("kill -SEGV $$", "it was killed by SIGSEGV"),
        ("kill -ILL $$", "it was killed by SIGILL"),
        ("echo 'bad things' >&2; exit 3", "bad things"),
        ("exit 0", "it printed no error"),
        ("echo hotlap-answer:no json", "it printed no error"),
    ],
)
def test_a_python_that_fails(program: Program, body: str, words: str) -> None:
    assert interpreter.ask_packages(program(body)) == (None, words)


def _is_ended(state: Path) -> bool:
    """Tell whether a process is gone or a zombie: on a full machine a killed one takes a while."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            if ") Z " in state.read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def test_a_python_that_hangs_behind_a_wrapper(program: Program, tmp_path: Path) -> None:
    """The wrapper's child holds the pipes; it is ended too."""
    note = tmp_path / "pid"
    script = program(f"sleep 600 &\necho $! > {note}\nwait")
    answer, because = interpreter.ask(script, "", timeout_s=0.5)
    assert (answer, because) == (None, "it did not answer within 0.5 s")
    if os.path.exists("/proc/self"):
        pid = note.read_text().strip()
        assert _is_ended(Path(f"/proc/{pid}/stat"))


def test_a_program_that_is_none(tmp_path: Path) -> None:
    answer, because = interpreter.ask(str(tmp_path / "no"), "", 5)
    assert answer is None
    assert because is not None
    assert "does not start" in because


def test_no_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    torch, because = interpreter.ask_torch(sys.executable)
    assert torch is None
    assert because == "ModuleNotFoundError: No module named 'torch'"


def test_a_torch_that_does_not_import(fake_torch: Program) -> None:
    fake_torch("raise ImportError('libcudart.so.12: cannot open shared object file')\n")
    torch, because = interpreter.ask_torch(sys.executable)
    assert torch is None
    assert because == "ImportError: libcudart.so.12: cannot open shared object file"


def test_a_torch_that_kills_its_process(fake_torch: Program) -> None:
    fake_torch("import os, signal; os.kill(os.getpid(), signal.SIGILL)\n")
    assert interpreter.ask_torch(sys.executable) == (None, "it was killed by SIGILL")


def test_the_real_torch_agrees_with_itself() -> None:
    module = pytest.importorskip("torch")
    torch, because = interpreter.ask_torch(sys.executable)
    assert because is None
    assert torch is not None
    assert torch.version == str(module.__version__)
    assert torch.cuda == module.version.cuda
    assert torch.cuda_available == module.cuda.is_available()
    assert torch.mkl == module.backends.mkl.is_available()


def test_which_python(program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = program("exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert interpreter.find_python() == script
    assert interpreter.find_python(script) == script
    with pytest.raises(WrongUse, match=r"--python nonesuch: no program"):
        interpreter.find_python("nonesuch")
    os.unlink(script)
    assert interpreter.find_python() is None


def test_decoders_are_found_by_name() -> None:
    packages = {"pillow": "11", "numpy": "2", "nvidia-dali-cuda120": "1.5", "torchcodec": "0.2"}
    assert interpreter.decoders(packages) == (
        ("pillow", "11", "JPEG, PNG"),
        ("torchcodec", "0.2", "video, audio"),
        ("nvidia-dali-cuda120", "1.5", "JPEG, video"),
    )


def test_the_compiler_is_the_one_that_torch_takes(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = program("exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert interpreter.find_compiler({"CXX": "python -O2"}) == (script, "python")
    default = "clang++" if sys.platform == "darwin" else "g++"
    assert interpreter.find_compiler({}) == (None, default)
