"""``hotlap demo``: its photographs, its choice of interpreter, and the whole thing once."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image, ImageChops, ImageStat

from hotlap.cli import demo
from hotlap.cli.tune import Files
from hotlap.errors import NotMeasurable, WrongUse
from hotlap.tune.session import Order

TRAIN, VAL, CLASSES = 64, 12, 10


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a demo folder with its photographs."""
    folder = tmp_path_factory.mktemp("demo") / "hotlap-demo"
    demo.prepare(folder, sys.executable)
    return folder


def python_without(tmp_path: Path, message: str = "") -> Path:
    """Return an interpreter in which torch, numpy and Pillow cannot be found."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\n{message}\nexec "{sys._base_executable}" -I -S "$@"\n')  # type: ignore[attr-defined]  # typeshed lacks it
    python.chmod(0o755)
    return python


def test_the_photographs_are_scikit_images_own(checkout: Path) -> None:
    script = runpy.run_path(str(checkout / "examples" / "photos" / "from_scikit_image.py"))
    originals = checkout / "examples" / "photos" / "originals"
    names = {path.stem for path in originals.glob("*.jpg")}
    assert names == set(script["NAMES"])
    licence = (originals / "LICENSE.md").read_text()
    for name in names:
        theirs = script["photograph"](name)
        with Image.open(originals / f"{name}.jpg") as ours:
            assert ours.size == theirs.size
            off = ImageStat.Stat(ImageChops.difference(ours.convert("RGB"), theirs)).mean
        assert max(off) < 8, name  # what JPEG changes, of 255
        assert f"`{name}.jpg`" in licence


def test_the_photographs_are_cut_once(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted((photos / "photos").rglob("*.jpg"))
    assert len(files) == (TRAIN + VAL) * CLASSES
    with Image.open(files[0]) as first:
        assert first.size == (500, 375)
    before = [path.stat().st_mtime_ns for path in files]
    demo.prepare(photos, sys.executable)
    assert [path.stat().st_mtime_ns for path in files] == before
    assert sorted(path.name for path in photos.iterdir()) == ["photos", "train.py"]
    assert capsys.readouterr().out == ""


def test_the_same_seed_cuts_the_same(checkout: Path, photos: Path, tmp_path: Path) -> None:
    script = checkout / "examples" / "photos" / "make_photos.py"
    words = [sys.executable, str(script), "--to", str(tmp_path / "photos")]
    subprocess.run([*words, "--train", "2", "--val", "1"], check=True)
    for path in (tmp_path / "photos" / "train").rglob("*.jpg"):
        same = photos / "photos" / path.relative_to(tmp_path / "photos")
        assert path.read_bytes() == same.read_bytes()


def test_a_changed_script_is_kept_and_said(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = photos / "train.py"
    own = script.read_text()
    try:
        script.write_text("# mine\n")
        demo.prepare(photos, sys.executable)
        assert script.read_text() == "# mine\n"
        assert "differs" in capsys.readouterr().out
    finally:
        script.write_text(own)


def test_a_folder_of_somebody_elses_photographs_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "holiday.jpg").write_bytes(b"\xff\xd8")
    with pytest.raises(WrongUse, match="was not made by this demo"):
        demo.prepare(tmp_path, sys.executable)
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["holiday.jpg"]


def test_a_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongUse, match="name another folder: hotlap demo FOLDER"):
        demo.prepare(tmp_path / "file" / "demo", sys.executable)


def test_a_failed_cutting_leaves_nothing_and_says_why(tmp_path: Path) -> None:
    python = python_without(tmp_path)
    folder = tmp_path / "hotlap-demo"
    with pytest.raises(NotMeasurable, match=r"could not cut .*No module named 'PIL'"):
        demo.prepare(folder, str(python))
    assert [path.name for path in folder.iterdir()] == ["train.py"]


def test_the_first_python_on_path_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrapper = tmp_path / "bin" / "python"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    assert demo.training_python() == str(wrapper)


def test_our_own_python_trains_when_the_first_lacks_torch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = python_without(tmp_path)
    monkeypatch.setenv("PATH", f"{python.parent}:/usr/bin:/bin")
    assert demo.training_python() == sys.executable
    assert f"{python} has no torch, no numpy, no pillow" in capsys.readouterr().out


def test_no_python_with_torch_names_the_line_to_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = python_without(tmp_path)
    monkeypatch.setenv("PATH", f"{python.parent}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(NotMeasurable) as caught:
        demo.training_python()
    assert str(caught.value).endswith(f"install: {python} -m pip install torch numpy pillow")


def test_a_python_that_does_not_start_counts_as_without(tmp_path: Path) -> None:
    python = python_without(tmp_path, message="exit 3")
    assert demo.missing_packages(str(python)) == ["torch", "numpy", "pillow"]
    assert demo.missing_packages(str(tmp_path / "none")) == ["torch", "numpy", "pillow"]
    assert demo.missing_packages(sys.executable) == []


@pytest.mark.parametrize(("code", "ours"), [(0, 0), (130, 130), (-2, 130)])
def test_the_training_runs_in_the_folder_and_its_end_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, ours: int
) -> None:
    seen: list[object] = []

    def train(words: list[str], *, output: None, quiet: bool, show_from: Path) -> int:
        seen.append((words, output, quiet, show_from, Path.cwd()))
        return code

    monkeypatch.setitem(sys.modules, "hotlap.cli.run", SimpleNamespace(train=train))
    monkeypatch.setenv("PATH", str(tmp_path))
    start = Path.cwd()
    assert demo.measure(tmp_path, sys.executable) == ours
    assert seen == [([sys.executable, "train.py"], None, False, start, tmp_path)]
    assert Path.cwd() == start


def test_the_training_is_tuned_in_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[object] = []

    def tuned(words: tuple[str, ...], order: Order, files: Files) -> int:
        seen.append((words, order.budget_s < 480, files.plan.name, Path.cwd()))
        return 0

    monkeypatch.setattr("hotlap.cli.tune.tune_command", tuned)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo.improve(tmp_path, sys.executable) == 0
    assert seen == [((sys.executable, "train.py"), True, "hotlap.plan.toml", tmp_path)]
