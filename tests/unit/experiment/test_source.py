"""Lines, expressions and settings of sources: small texts, odd texts, texts that are none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from hotlap.experiment.settings import settings_in
from hotlap.experiment.source import read_source, with_source
from hotlap.experiment.source_files import LONGEST, SourceFiles, Span
from hotlap.inject.conditions.instructions import position
from hotlap.values.facts import Facts, Measured, Setting
from hotlap.values.record import Place
from hotlap.values.trial import OperatorEntry, ProfileEntry

RUN: Any = None
"""No test here asks what the run was."""


def write(folder: Path, text: str, name: str = "train.py") -> SourceFiles:
    """Write a source file and return what reads it."""
    (folder / name).write_text(dedent(text))
    return SourceFiles(folder)


def entry(place: Place | None, span: Span | None = None, *callers: Place) -> ProfileEntry:
    """Return an entry of a profile at a place."""
    return ProfileEntry(
        role="trainer",
        phase="forward",
        place=place,
        expression=None,
        callers=callers,
        leaf="train.main",
        samples=1,
        ns=1,
        working_ns=None,
        blocked_ns=None,
        runqueue_ns=None,
        span=span,
    )


# -- lines ----------------------------------------------------------------------------------------

LOOPS = """\
    for epoch in range(3):
        print(epoch)

    def main(rows):
        for row in rows:
            while row:
                row = step(row)
            else:
                done(row)
            found = [one for one in row]
        for x in (
            rows
        ):
            use(
                x,
            )

        def inner(y):
            return y

        return max(rows, key=lambda r: r[0])
    """


@pytest.mark.parametrize(
    ("line", "text", "loops", "function", "comprehension"),
    [
        (1, "for epoch in range(3):", (), None, False),
        (2, "print(epoch)", (1,), None, False),
        (5, "for row in rows:", (), 4, False),
        (6, "while row:", (5,), 4, False),
        (7, "row = step(row)", (5, 6), 4, False),
        (9, "done(row)", (5,), 4, False),
        (10, "found = [one for one in row]", (5,), 4, True),
        (15, "x,", (11,), 4, False),
        (19, "return y", (), 18, False),
        (21, "return max(rows, key=lambda r: r[0])", (), 4, False),
    ],
)
def test_what_stands_around_a_line(
    tmp_path: Path,
    line: int,
    text: str,
    loops: tuple[int, ...],
    function: int | None,
    comprehension: bool,
) -> None:
    place = Place("train.py", line, "main")
    found = write(tmp_path, LOOPS).line(place)
    assert found is not None
    assert found.place == place
    assert (found.text, found.loops) == (text, loops)
    assert (found.function_line, found.comprehension) == (function, comprehension)


def test_loops_of_an_outer_function_are_not_those_of_an_inner_one(tmp_path: Path) -> None:
    files = write(tmp_path, "for a in b:\n    def f():\n        for c in d:\n            g(c)\n")
    found = files.line(Place("train.py", 4, "f"))
    assert found is not None
    assert (found.loops, found.function_line) == ((3,), 2)


@pytest.mark.parametrize("line", [0, 99])
def test_a_line_that_is_not_there(tmp_path: Path, line: int) -> None:
    assert write(tmp_path, "a = 1\n").line(Place("train.py", line, "f")) is None


# -- files that are odd ---------------------------------------------------------------------------


def test_a_file_that_cannot_be_parsed_has_lines_and_no_more(tmp_path: Path) -> None:
    files = write(tmp_path, "def f(:\n    print(1)\n")
    place = Place("train.py", 2, "f")
    found = files.line(place)
    assert found is not None
    assert (found.text, found.loops, found.function_line) == ("print(1)", (), None)
    assert files.expression(place, (2, 2, 4, 12)) == "print(1)"
    assert list(settings_in(files, "train.py")) == []


@pytest.mark.parametrize(
    "content",
    [
        b"# coding: no-such-coding\nx = 1\n",
        b"x = '\xff\xfe'\n",
        b"x = 1\x00\n",
        b"\xef\xbb\xbf# coding: latin-1\nx = 1\n",
    ],
)
def test_bytes_that_are_no_source(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "train.py").write_bytes(content)
    files = SourceFiles(tmp_path)
    place = Place("train.py", 2, "f")
    assert files.expression(place, (2, 2, 0, 5)) in (None, "x = 1")
    assert list(settings_in(files, "train.py")) == []


@pytest.mark.parametrize(
    "name", ["missing.py", "<string>", "<stdin>", "<ipython-input-3-abc>", "", ".", "a\x00b.py"]
)
def test_names_that_are_no_files(tmp_path: Path, name: str) -> None:
    files = SourceFiles(tmp_path)
    place = Place(name, 1, "f")
    assert files.line(place) is None
    assert files.expression(place, (1, 1, 0, 4)) is None
    assert list(settings_in(files, name)) == []
    assert read_source(tmp_path, [entry(place, (1, 1, 0, 4))], [name]).lines == {}


def test_an_encoding_that_is_declared_is_used(tmp_path: Path) -> None:
    text = "# coding: latin-1\nfür = lade('Ä', grün(3))\n"
    (tmp_path / "train.py").write_bytes(text.encode("latin-1"))
    files = SourceFiles(tmp_path)
    place = Place("train.py", 2, "<module>")
    line = files.line(place)
    assert line is not None
    assert line.text == "für = lade('Ä', grün(3))"
    begin = len("für = lade('Ä', ".encode())
    assert files.expression(place, (2, 2, begin, begin + len("grün(3)".encode()))) == "grün(3)"


def test_lines_end_where_python_says(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(b"a = 'x\x0cy\xe2\x80\xa8z'\r\nb = f(1)\r\n")
    line = SourceFiles(tmp_path).line(Place("train.py", 2, "<module>"))
    assert line is not None
    assert line.text == "b = f(1)"


def test_a_form_feed_ends_no_line(tmp_path: Path) -> None:
    files = write(tmp_path, "import a\n\x0c\nb = f(1)\n")
    line = files.line(Place("train.py", 3, "<module>"))
    assert line is not None
    assert line.text == "b = f(1)"


def test_absolute_names_are_read_where_they_lie(tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()
    path = tmp_path / "elsewhere.py"
    path.write_text("a = f(1)\n")
    line = SourceFiles(tmp_path / "start").line(Place(str(path), 1, "<module>"))
    assert line is not None
    assert line.text == "a = f(1)"


# -- expressions ----------------------------------------------------------------------------------


def span_in(text: str, part: str, line: int = 1) -> Span:
    """Return the span of a part of a line."""
    begin = text.splitlines()[line - 1].encode().index(part.encode())
    return line, line, begin, begin + len(part.encode())


@pytest.mark.parametrize(
    ("text", "at", "expression"),
    [
        ("y = self.net(x).mean()\n", "self.net(x)", "self.net(x)"),
        ("y = self.net(x).mean()\n", "self.net", "self.net(x)"),
        ("y = self.net(x).mean()\n", "x", "self.net(x)"),
        ("y = a @ b + c\n", "a @ b", "a @ b"),
        ("y = a @ b + c\n", "a", "a @ b"),
        ("total += loss.item()\n", "total += loss.item()", "total += loss.item()"),
        ("total += loss.item()\n", "loss.item()", "loss.item()"),
        ("x = table[row, 3]\n", "table[row, 3]", "table[row, 3]"),
        ("x = table[f(row)]\n", "f", "f(row)"),
        ("for x in loader: pass\n", "for x in loader: pass", "loader"),
        ("for x in loader: pass\n", "loader", "loader"),
        ("for x in make(3): pass\n", "make(3)", "make(3)"),
        ("with torch.no_grad(): pass\n", "with torch.no_grad(): pass", "torch.no_grad()"),
        ("while busy(): pass\n", "busy()", "busy()"),
        ("x = [f(i) for i in y]\n", "[f(i) for i in y]", "[f(i) for i in y]"),
        ("x = [f(i) for i in y]\n", "f(i)", "f(i)"),
        ("x = y\n", "y", "y"),
        ("del x\n", "del x", "del x"),
        ("assert f(x), 'no'\n", "f(x)", "f(x)"),
        ("s = f'{loss:.3f}'\n", "loss", "f'{loss:.3f}'"),
    ],
)
def test_the_operation_at_a_span(tmp_path: Path, text: str, at: str, expression: str) -> None:
    files = write(tmp_path, text)
    assert files.expression(Place("train.py", 1, "f"), span_in(text, at)) == expression


def test_an_expression_over_several_lines_becomes_one(tmp_path: Path) -> None:
    files = write(tmp_path, "y = f(\n    a,\n    b,\n)\n")
    assert files.expression(Place("train.py", 1, "f"), (1, 4, 4, 1)) == "f( a, b, )"
    long = write(tmp_path, f"y = f({'a, ' * 200})\n", "long.py")
    text = long.expression(Place("long.py", 1, "f"), (1, 1, 4, 607))
    assert text is not None
    assert len(text) == LONGEST
    assert text.endswith("…")


@pytest.mark.parametrize(
    ("line", "span"),
    [(1, None), (2, (1, 1, 0, 3)), (1, (0, 1, 0, 3)), (9, (9, 9, 0, 3)), (1, (1, 9, 0, 3))],
)
def test_a_span_that_does_not_fit_the_file(tmp_path: Path, line: int, span: Span | None) -> None:
    files = write(tmp_path, "a = 1\nb = 2\n")
    assert files.expression(Place("train.py", line, "f"), span) is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells no columns before 3.11")
def test_expressions_of_what_python_ran(tmp_path: Path) -> None:
    text = dedent("""\
        def f(xs, look):
            total = 0
            for x in look(xs):
                total += look(x)[0] + (
                    look(
                        x,
                    )[0]
                )
            return look([total]) @ xs if total else None
        """)
    files = write(tmp_path, text)
    seen: list[tuple[int, str | None]] = []

    def look(value: list[int]) -> list[int]:
        frame = sys._getframe(1)
        line, span = position(frame.f_code, frame.f_lasti)
        assert line == frame.f_lineno
        seen.append((line, files.expression(Place("train.py", line, "f"), span)))
        return value

    space: dict[str, Callable[..., object]] = {}
    exec(compile(text, "train.py", "exec"), space)
    with pytest.raises(TypeError):
        space["f"]([[1]], look)
    assert seen == [
        (3, "look(xs)"),
        (4, "look(x)"),
        (5, "look( x, )"),
        (9, "look([total])"),
    ]


# -- together -------------------------------------------------------------------------------------


def test_every_place_that_is_named_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import model\nmodel.run(1)\n")
    (tmp_path / "model.py").write_text("import torch\ndef run(x):\n    torch.set_num_threads(x)\n")
    (tmp_path / "other.py").write_text("num = 1\nprint(num)\n")
    outer, inner = Place("train.py", 2, "<module>"), Place("model.py", 3, "run")
    gone = Place("gone.py", 1, "f")
    operators = [OperatorEntry(Place("other.py", 2, "<module>"), "forward", "aten::mm", 1.0, 1.0)]
    profile = [entry(inner, (3, 3, 4, 28), outer), entry(None), entry(gone, (1, 1, 0, 1))]
    source = read_source(tmp_path, profile, ["train.py"], operators)
    assert sorted(source.lines) == ["model.py:3", "other.py:2", "train.py:2"]
    assert [one.expression for one in source.profile] == ["torch.set_num_threads(x)", None, None]
    assert [(one.name, one.value, one.place.file) for one in source.settings] == [
        ("set_num_threads", "x", "model.py"),
        ("print", True, "other.py"),
    ]


def test_facts_get_what_the_source_says(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\ntorch.set_num_threads(2)\n")
    place = Place("train.py", 2, "<module>")
    profile: tuple[ProfileEntry, ...] = (entry(place, (2, 2, 0, 24)),)
    measured = Measured(profile, "a trial")
    facts = with_source(Facts(run=RUN, profile=measured), tmp_path, None)
    assert isinstance(facts.profile, Measured)
    assert facts.profile.origin == "a trial"
    assert facts.profile.value[0].expression == "torch.set_num_threads(2)"
    assert facts.source["train.py:2"].text == "torch.set_num_threads(2)"
    assert facts.settings == (Setting("set_num_threads", 2, place),)


def test_facts_without_a_profile_stay_as_they_are(tmp_path: Path) -> None:
    facts = Facts(run=RUN)
    assert with_source(facts, tmp_path, None) == facts
