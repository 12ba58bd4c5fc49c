"""What others build on is frozen: the command line and the public names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

import hotlap
from hotlap.cli import VERBS
from house.surface import RENEW, describe, surface

HERE = Path(__file__).parent
PUBLIC_NAMES = ["Measurement", "__version__", "measure", "phase", "prepare", "step", "unprepare"]


def test_the_command_line_is_frozen() -> None:
    assert surface() == (HERE / "surface.txt").read_text(), RENEW


def test_the_public_names_are_frozen_and_there() -> None:
    public = list(getattr(hotlap, "__all__", ["__version__"]))
    assert public == PUBLIC_NAMES
    assert [name for name in public if not hasattr(hotlap, name)] == []
    assert len(public) <= 16


def test_the_table_of_verbs_is_sorted_and_each_verb_lies_where_it_says() -> None:
    assert list(VERBS) == sorted(VERBS)
    for name, verb in VERBS.items():
        command = import_module(verb.module).command
        assert isinstance(command, click.Command)
        assert command.name == name
        assert verb.module == f"hotlap.cli.{name}"
        assert verb.says.endswith(".")
        assert len(verb.says) <= 68, "one line of --help in a terminal of 80 columns"


def test_each_kind_of_change_is_seen() -> None:
    @click.command()
    @click.argument("words", nargs=-1, required=True)
    @click.option("--keep", type=int)
    @click.option("--dry/--wet")
    @click.option("--to", type=click.Choice(["csv", "json"]), multiple=True)
    def verb() -> None: ...

    assert describe(verb, "hotlap verb") == [
        "hotlap verb",
        "    argument words text required nargs=-1",
        "    option --keep integer",
        "    option --dry --wet",
        "    option --to choice csv json multiple",
    ]
