"""A rule's page, shown by its code."""

from __future__ import annotations

import io
from types import ModuleType

import pytest
from click.testing import CliRunner
from rich.console import Console

from hotlap.cli import main
from hotlap.cli.explain import command
from hotlap.report.rule_page import in_markdown, rule_page, show

PAGE = """# HL101 input-bound-decode: every sample is decoded anew

**What.** The data set decodes [all] images, `again` and again.

**When it is wrong.**

- When a cache is cold.
"""


def _module(code: str, name: str, docstring: str | None) -> ModuleType:
    module = ModuleType(f"rules.{name}", docstring)
    vars(module).update(CODE=code, NAME=name)
    return module


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [
        _module("HL402", "log-every-step", "# HL402 log-every-step: a line per step\n\nText."),
        _module("HL101", "input-bound-decode", PAGE),
        _module("HL102", "input-blocked", "Reading waits.\n\nMore."),
        _module("XY001", "from-a-plug-in", None),
    ]
    monkeypatch.setattr("hotlap.cli.explain.rules", lambda: modules)


def test_a_page_is_its_docstring() -> None:
    result = CliRunner().invoke(command, ["HL101"])
    assert result.exit_code == 0
    assert result.output == PAGE


@pytest.mark.parametrize("word", ["hl101", "Input-Bound-Decode"])
def test_a_code_or_a_name_in_any_case(word: str) -> None:
    assert CliRunner().invoke(command, [word]).output == PAGE


def test_without_a_code_all_are_listed_by_group() -> None:
    lines = CliRunner().invoke(command, []).output.splitlines()
    assert lines == [
        "input",
        "  HL101  input-bound-decode  every sample is decoded anew",
        "  HL102  input-blocked       Reading waits.",
        "host code and logging",
        "  HL402  log-every-step      a line per step",
        "XY0",
        "  XY001  from-a-plug-in",
    ]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("HL103", "did you mean HL10"),
        ("input-bound", "did you mean input-b"),
        ("zzz", "hotlap explain lists all codes"),
    ],
)
def test_a_wrong_code_names_what_is_near(
    wrong: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", wrong]) == 2
    said = capsys.readouterr().err
    assert f"{wrong!r} is no code of a finding" in said
    assert hint in said


def test_a_terminal_gets_it_rendered() -> None:
    out = io.StringIO()
    console = Console(file=out, width=60, force_terminal=True, legacy_windows=False)
    show(rule_page("HL101", "input-bound-decode", PAGE), console)
    text = out.getvalue()
    assert "**" not in text
    assert "every sample is decoded anew" in text
    assert "[all]" in text
    assert "\x1b[1mWhen it is wrong.\x1b[0m" in text


def test_a_docstring_without_a_heading_is_a_page_too() -> None:
    page = rule_page("HL102", "input-blocked", "Reading waits.\n\n    More.\n    ")
    assert in_markdown(page) == "# HL102 input-blocked: Reading waits.\n\nMore.\n"
    assert in_markdown(rule_page("XY001", "bare", None)) == "# XY001 bare\n"
