"""The user's line: what is library and what is the user's, however Python is laid out."""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import hotlap
from hotlap.probe.places import Places

STDLIB = sysconfig.get_paths()["stdlib"]
PURELIB = sysconfig.get_paths()["purelib"]

USERS = [
    "/home/me/project/train.py",
    "/home/me/project/pkg/data.py",
    "/home/me/site-packages-backup/train.py",
    "/home/me/my-site-packages/train.py",
    "/home/me/dist-packages-old/train.py",
    "/home/me/not-dist-packages/train.py",
    "/home/me/lib/python3.11/train.py",
    "/tmp/ipykernel_1/123.py",
    "/home/me/app.pyz/__main__.py",
    "/home/me/editable/src/mypkg/data.py",
    "/opt/code/train.py",
    "/usr/lib/python-projects/train.py",
    "<stdin>",
    "<ipython-input-3-abcdef>",
    "<python-input-0>",
    "<console>",
    "train.py",
]
LIBRARY = [
    f"{STDLIB}/json/decoder.py",
    f"{PURELIB}/torch/nn/modules/module.py",
    "/home/me/project/.venv/lib/python3.11/site-packages/rich/console.py",
    "/home/me/project/venv/lib64/python3.11/site-packages/numpy/core.py",
    "/opt/conda/lib/python3.11/site-packages/tqdm/std.py",
    "/opt/conda/envs/train/lib/python3.10/site-packages/PIL/Image.py",
    "/usr/lib/python3/dist-packages/yaml/__init__.py",
    "/usr/local/lib/python3.11/dist-packages/torch/_tensor.py",
    "/home/me/.local/lib/python3.11/site-packages/wandb/sdk.py",
    "/opt/python/site-packages/some.egg/pkg/module.py",
    "<frozen importlib._bootstrap>",
    "<frozen runpy>",
    "<__array_function__ internals>",
    "<eval_with_key>.5",
    "<attrs generated init pkg.Thing>",
    "<decorator-gen-12>",
    os.path.join(os.path.dirname(hotlap.__file__), "probe", "touches.py"),
    os.path.join(os.path.dirname(torch.__file__), "_tensor.py"),
]


@pytest.fixture
def places() -> Places:
    return Places("/home/me/project")


@pytest.mark.parametrize("name", USERS)
def test_the_users_own(places: Places, name: str) -> None:
    assert places.is_users(name)


@pytest.mark.parametrize("name", LIBRARY)
def test_libraries(places: Places, name: str) -> None:
    assert not places.is_users(name)


def test_what_compilers_write_is_not_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places(str(tmp_path))
    assert not places.is_users("/tmp/torchinductor_me/k4/ck4k4.py")
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
        assert not places.is_users(str(tmp_path / name / "ab" / "kernel.py"))
        assert places.is_users(str(tmp_path / f"{name}_of_mine.py"))


def test_the_standard_library_by_any_of_its_names(tmp_path: Path) -> None:
    places = Places(str(tmp_path))
    assert not places.is_users(os.__file__)
    assert not places.is_users(os.path.realpath(os.__file__))


def test_torch_built_from_its_sources_is_torch_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = types.ModuleType("torch")
    fake.__file__ = str(tmp_path / "pytorch" / "torch" / "__init__.py")
    monkeypatch.setitem(sys.modules, "torch", fake)
    places = Places(str(tmp_path))
    assert not places.is_users(str(tmp_path / "pytorch" / "torch" / "_tensor.py"))
    assert places.is_users(str(tmp_path / "train.py"))


def entry(patch: pytest.MonkeyPatch, name: str | None, origin: str | None) -> None:
    """Let the entry module be what ``python -m name`` makes of it."""
    main = types.ModuleType("__main__")
    spec: Any = types.SimpleNamespace(name=name, origin=origin)
    main.__spec__ = spec if name else None
    patch.setitem(sys.modules, "__main__", main)


SITE = "/home/me/train/.venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("name", "origin", "yes", "no"),
    [
        (
            "pkg.train",
            f"{SITE}/pkg/train.py",
            [f"{SITE}/pkg/data.py", f"{SITE}/pkg/deep/er.py"],
            [f"{SITE}/pkgother/data.py", f"{SITE}/torch/_tensor.py", f"{SITE}/module.py"],
        ),
        ("pkg.__main__", f"{SITE}/pkg/__main__.py", [f"{SITE}/pkg/data.py"], [f"{SITE}/x/y.py"]),
        # A project's folder often has the name of the package that is installed below it.
        (
            "train.main",
            f"{SITE}/train/main.py",
            [f"{SITE}/train/data.py", "/home/me/train/notes.py"],
            [f"{SITE}/rich/console.py"],
        ),
        ("pkg.a.b.pkg.run", f"{SITE}/pkg/a/b/pkg/run.py", [f"{SITE}/pkg/a/x.py"], [f"{SITE}/q.py"]),
        ("single", f"{SITE}/single.py", [f"{SITE}/single.py"], [f"{SITE}/singlet.py"]),
        ("torch.distributed.run", f"{SITE}/torch/distributed/run.py", [], [f"{SITE}/torch/x.py"]),
        (
            "accelerate.commands.launch",
            f"{SITE}/accelerate/commands/launch.py",
            [],
            [f"{SITE}/accelerate/accelerator.py"],
        ),
    ],
)
def test_an_installed_package_that_is_run_as_the_script_is_the_users(
    monkeypatch: pytest.MonkeyPatch, name: str, origin: str, yes: list[str], no: list[str]
) -> None:
    entry(monkeypatch, name, origin)
    places = Places("/home/me/train")
    assert [path for path in yes if not places.is_users(path)] == []
    assert [path for path in no if places.is_users(path)] == []


@pytest.mark.parametrize("origin", [None, "built-in", "frozen"])
def test_an_entry_without_a_file_is_no_package(
    monkeypatch: pytest.MonkeyPatch, origin: str | None
) -> None:
    entry(monkeypatch, "pkg.train", origin)
    assert not Places("/x").is_users(f"{SITE}/pkg/data.py")
    monkeypatch.delitem(sys.modules, "__main__")
    assert not Places("/x").is_users(f"{SITE}/pkg/data.py")


def test_text_that_was_executed_is_the_users_only_as_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Named tuples and data classes are made of such text too."""
    monkeypatch.setattr(sys, "orig_argv", ["python", "-X", "utf8", "-c", "import torch"])
    assert Places("/x").is_users("<string>")
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py", "-c", "config.toml"])
    assert not Places("/x").is_users("<string>")


# -- frames ---------------------------------------------------------------------------------------


def frame_in(*files: str) -> FrameType:
    """Return the innermost frame of functions that call each other, in files outermost first."""
    inner: Any = sys._getframe
    for name in reversed(files):
        space: dict[str, Any] = {"inner": inner}
        exec(compile("def call():\n    return inner()\n", name, "exec"), space)
        inner = space["call"]
    frame = inner()
    assert isinstance(frame, FrameType)
    return frame


def test_the_innermost_of_the_users_lines_is_found(places: Places) -> None:
    frame = frame_in("/home/me/project/train.py", "/home/me/project/data.py", LIBRARY[1])
    found = places.find(frame)
    assert found is not None
    assert found.f_code.co_filename == "/home/me/project/data.py"
    assert places.to_dict(found) == {"file": "data.py", "line": 2, "function": "call"}


def test_no_line_of_the_users_is_none(places: Places) -> None:
    assert places.find(None) is None
    assert places.to_dict(None) is None
    deep = frame_in("/home/me/project/train.py", *[LIBRARY[1]] * 80)
    assert places.find(deep) is None, "not searched without end"


def test_files_below_the_start_directory_are_shown_relative_to_it(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert places.shown("/home/me/project/pkg/data.py") == "pkg/data.py"
    assert places.shown("/home/me/project2/data.py") == "/home/me/project2/data.py"
    assert places.shown("<stdin>") == "<stdin>"
    assert Places("/").shown("/train.py") == "train.py"
    assert Places("/home/me/project/").shown("/home/me/project/a.py") == "a.py"
    # A relative name was meant from where the script was started, wherever it is now.
    monkeypatch.chdir(tmp_path)
    assert places.shown("pkg/data.py") == "pkg/data.py"
    assert places.shown("../other/data.py") == "/home/me/other/data.py"
