"""The corpus of slow trainings: its labels are complete and its scripts tell nothing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

tomllib = pytest.importorskip("tomllib")  # Python 3.11

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
FOLDERS = sorted(path.parent for path in CORPUS.glob("*/slow.py"))
PHASES = set(
    "data_wait transfer forward backward optimizer communication logging other "
    "start_up evaluation checkpoint epoch_edge compile memory".split()
)
CAUSE_FIELDS = "phase also file line lines cause_words cause source twin".split()
TELLING = re.compile(
    r"slow|bottleneck|ineffic|wasteful|fixme|todo|unneces|needless|redundan|overhead|expensive"
    r"|costly|flaw|mistake|(?<!de)bug|culprit|speed ?up|optimi[sz]ation|faster|\bleak\b|should be"
    r"|on purpose|too (many|much|often|large|small|heavy)|hotlap"
)
SUBJECTS = {"92_bug_reports": "bug", "93_radiator_agent": "leak"}
"""Words that are what a training is about: reports of bugs, the heat that leaks out of a house."""
EXACT_NAMES = {"slow.py"}
"""What a usage line says: the file's own name."""


def _label(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((folder / "label.toml").read_text(encoding="utf-8"))
    return loaded


def _causes(label: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the causes of a label: its own fields, its tables, or none."""
    if label["healthy"]:
        return []
    causes: list[dict[str, Any]] = label.get("causes", [label])
    return causes


def _told(text: str) -> Iterator[str]:
    """Yield what a script says to a reader: comments, names and strings, in lower case."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.NAME, tokenize.STRING):
            said = token.string.lower()
            for name in EXACT_NAMES:
                said = said.replace(name, "")
            yield said


each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@each
def test_a_label_is_complete(folder: Path) -> None:
    label = _label(folder)
    assert label["format"] == 1
    assert label["title"]
    assert label["command"].split()[0] in ("python", "torchrun")
    assert label["command"].endswith("slow.py")
    causes = _causes(label)
    assert len(causes) == (0 if label["healthy"] else 2 if "causes" in label else 1)
    for cause in causes:
        assert not [field for field in CAUSE_FIELDS if field not in cause]
        assert {cause["phase"], *cause["also"]} <= PHASES
        assert cause["phase"] not in cause["also"]
        assert cause["source"] == "own" or cause["source"].startswith("cases.md: ")
    if label["healthy"]:
        assert label["grid"]
        assert not list(folder.glob("fixed*.py"))


@each
def test_the_lines_exist(folder: Path) -> None:
    for cause in _causes(_label(folder)):
        lines = (folder / cause["file"]).read_text(encoding="utf-8").splitlines()
        assert cause["line"] in cause["lines"]
        assert cause["lines"] == sorted(set(cause["lines"]))
        for number in cause["lines"]:
            assert lines[number - 1].strip(), f"line {number} is empty"
            assert not lines[number - 1].lstrip().startswith("#"), f"line {number} is a comment"


@each
def test_the_words_fit_the_sentence(folder: Path) -> None:
    for cause in _causes(_label(folder)):
        assert any(re.search(word, cause["cause"].lower()) for word in cause["cause_words"])
        for word in cause["cause_words"]:
            assert word == word.lower()


@each
def test_the_ratio_was_measured(folder: Path) -> None:
    label = _label(folder)
    told = [] if label["healthy"] else [label, *label.get("causes", [])]
    missing = [part["twin"] for part in told if "ratio" not in part]
    for ratio in [part["ratio"] for part in told if "ratio" in part]:
        assert ratio["pairs"] >= 1
        assert ratio["low"] <= ratio["median"] <= ratio["high"]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not measured yet, see measure.py")


@each
def test_the_script_tells_nothing(folder: Path) -> None:
    said = list(_told((folder / "slow.py").read_text(encoding="utf-8")))
    subject = SUBJECTS.get(folder.name, "\n")
    told = [text.replace(subject, "") for text in (*said, folder.name)]
    assert not [text for text in told if TELLING.search(text)]


@each
def test_scripts_parse_and_twins_differ(folder: Path) -> None:
    label = _label(folder)
    trees = {
        path.name: ast.dump(ast.parse(path.read_text(encoding="utf-8")))
        for path in folder.glob("*.py")
    }
    twins = [label["twin"]] if not label["healthy"] else []
    twins += [cause["twin"] for cause in label.get("causes", [])]
    assert set(trees) == {"slow.py", *twins}
    assert len(set(trees.values())) == len(trees)


@each
def test_a_script_has_a_readable_size(folder: Path) -> None:
    length = len((folder / "slow.py").read_text(encoding="utf-8").splitlines())
    assert 50 <= length <= 160


def test_there_are_enough_of_each_kind() -> None:
    labels = [_label(folder) for folder in FOLDERS]
    slow = [label for label in labels if not label["healthy"]]
    causes = [cause for label in slow for cause in _causes(label)]
    public = {label["source"] for label in labels if label["healthy"]}
    public = {source for source in public if source != "own"}
    public |= {cause["source"] for cause in causes if cause["source"] != "own"}
    assert len(slow) >= 36
    assert len(public) >= 26
    assert sum(cause["source"] == "own" for cause in causes) >= 10
    assert sum(label["healthy"] for label in labels) >= 6
    assert sum("causes" in label for label in labels) >= 4
    assert sum(label["command"].startswith("torchrun") for label in labels) >= 3
    assert {cause["phase"] for cause in causes} == PHASES


def test_folders_are_numbered_without_gaps() -> None:
    numbers = sorted(int(folder.name.partition("_")[0]) for folder in FOLDERS)
    assert numbers == list(range(1, len(numbers) + 1))
