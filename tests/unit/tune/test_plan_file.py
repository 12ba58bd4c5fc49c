"""The plan's file: what is written is read again, and what is none is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.errors import WrongUse
from hotlap.tune.plan_file import read, write
from hotlap.values.finding import Bounds
from hotlap.values.plan import Plan
from unit.tune.plans import HERE, choice, plan

FULL = plan(
    choice(),
    choice("loader_workers", 2, numerics="resampled", predicted=Bounds(None, None), measured=None),
    choice("autocast", "bfloat16", environment={"SOME_VARIABLE": "1"}, snippet='a = "1"\nb = 2'),
)


@pytest.mark.parametrize(
    "written",
    [FULL, plan(), plan(gain=None, step_ns=None), plan(fingerprint={}), plan(command=())],
)
def test_what_is_written_is_read_again(tmp_path: Path, written: Plan) -> None:
    path = tmp_path / "hotlap.plan.toml"
    write(path, written)
    assert read(path) == (written,)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_the_file_says_what_it_is_for(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    write(path, FULL)
    text = path.read_text()
    assert "hotlap run --plan mine.toml COMMAND" in text
    assert "format = 1" in text
    assert str(tmp_path) not in text


def test_plans_of_other_fingerprints_stay_and_the_same_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "hotlap.plan.toml"
    here, there = plan(), plan(fingerprint={**HERE, "cpu_model": "Another"})
    write(path, here)
    write(path, there)
    assert read(path) == (here, there)
    fresh = plan(choice("gc_control", "freeze"), made="2026-02-02T00:00:00+00:00")
    write(path, fresh)
    assert read(path) == (there, fresh)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("format = 1\n[[plan", "is no plan"),
        ("", "is of format None"),
        ("format = 2\n", "update hotlap"),
        ("format = 1\n[[plan]]\nmade = '1'\n", "is damaged: KeyError: 'knob'"),
        ("format = 1\nplan = 3\n", "is damaged"),
        ("format = 1\nplan = ['a']\n", "is damaged"),
        (
            "format = 1\n[[plan]]\nequivalence = 'identical'\nfingerprint = {}\n"
            "[[plan.knob]]\nname = 'a'\nvalue = 1\nnumerics = 'magic'\n",
            "'magic' is no class of numerics",
        ),
    ],
)
def test_what_is_no_plan_is_refused_in_words_and_left(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "hotlap.plan.toml"
    path.write_text(text)
    with pytest.raises(WrongUse, match=r"hotlap\.plan\.toml") as caught:
        read(path)
    assert says in str(caught.value)
    with pytest.raises(WrongUse):
        write(path, FULL)
    assert path.read_text() == text


def test_bytes_that_are_no_text_are_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "hotlap.plan.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WrongUse, match="is no plan"):
        read(path)
    with pytest.raises(WrongUse, match="is no plan"):
        read(tmp_path)


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is no such file; `hotlap tune COMMAND` makes one"):
        read(tmp_path / "nothing.toml")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "hotlap.plan.toml"
    write(path, FULL)
    before = path.read_bytes()
    whole = Path.write_text

    def torn(self: Path, text: str, encoding: str | None = None) -> int:
        whole(self, text[: len(text) // 2], encoding=encoding)
        raise error

    monkeypatch.setattr(Path, "write_text", torn)
    with pytest.raises(type(error)):
        write(path, plan(fingerprint={"torch": "3"}))
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
