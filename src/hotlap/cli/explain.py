"""``hotlap explain``: the page of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Literal

import click
from rich.console import Console

from hotlap.cli.report import in_colour
from hotlap.errors import WrongUse
from hotlap.report.rule_page import RulePage, listing, rule_page, show


@click.command(name="explain")
@click.argument("code", required=False, metavar="[CODE]")
def command(code: str | None) -> None:
    """Say what a finding means: what it is, how it is measured, when it is wrong, what to do.

    CODE is that of a finding (HL101), or its name. Without it all codes are listed.
    """
    colours: Literal["standard"] | None = "standard" if in_colour() else None
    console = Console(color_system=colours, highlight=False, legacy_windows=False)
    pages = [page_of(module) for module in rules()]
    if code is None:
        listing(pages, console)
        return
    show(find(code, pages), console)


def rules() -> list[ModuleType]:
    """Return the modules of all rules, in the order of the catalogue."""
    from hotlap.diagnose import catalogue

    names = (name if "." in name else f"hotlap.diagnose.rules.{name}" for name in catalogue.RULES)
    return [import_module(name) for name in names]


def page_of(module: ModuleType) -> RulePage:
    """Return the page that stands in a rule's docstring."""
    return rule_page(module.CODE, module.NAME, module.__doc__)


def find(wanted: str, pages: Sequence[RulePage]) -> RulePage:
    """Return the page of a code or name, in any case; raises WrongUse with what is near it."""
    for page in pages:
        if wanted.lower() in (page.code.lower(), page.name.lower()):
            return page
    known = [word for page in pages for word in (page.code, page.name)]
    lowered = {word.lower(): word for word in known}
    near = [lowered[word] for word in get_close_matches(wanted.lower(), lowered, 4, 0.6)]
    hint = f"did you mean {' or '.join(near)}?" if near else "hotlap explain lists all codes"
    raise WrongUse(f"{wanted!r} is no code of a finding; {hint}")
