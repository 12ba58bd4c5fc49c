"""A rule's page: its docstring, in Markdown, for a terminal and for the documentation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

WIDEST: Final = 100

GROUPS: Final = {
    "HL1": "input",
    "HL2": "transfer and synchronisation",
    "HL3": "compute",
    "HL4": "host code and logging",
    "HL5": "communication",
    "HL6": "memory",
    "HL7": "start-up and the edges of a run",
    "HL9": "general",
}
"""What a code's beginning says. Plug-ins bring their own letters."""


class RulePage(NamedTuple):
    """A rule as its page shows it. title: one line; text: Markdown below it."""

    code: str
    name: str
    title: str
    text: str


def rule_page(code: str, name: str, docstring: str | None) -> RulePage:
    """Return the page of a rule.

    docstring: of the rule's module, in Markdown; its first line may be a heading that begins with
    code and name (``# HL101 input-bound: what it is``), which are not repeated in the title.
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    first = lines[0] if lines else ""
    title = re.sub(rf"^#*\s*(?:{code}\b)?\s*(?:{re.escape(name)}\b)?\s*:?\s*", "", first).strip()
    text = "\n".join(lines[1:]).strip()
    return RulePage(code, name, title, text)


def in_markdown(page: RulePage) -> str:
    """Return the page as a file of Markdown that ends with a newline."""
    head = f"# {page.code} {page.name}"
    parts = [f"{head}: {page.title}" if page.title else head]
    if page.text:
        parts.append(page.text)
    return "\n\n".join(parts) + "\n"


def show(page: RulePage, console: Console) -> None:
    """Print the page: Markdown rendered on a terminal, and as it stands elsewhere."""
    if not console.is_terminal:
        console.print(Text(in_markdown(page)), end="", soft_wrap=True)
        return
    width = min(console.width, WIDEST)
    head = Text.assemble((page.code, "bold red"), " ", (page.name, "bold"))
    if page.title:
        head.append(f": {page.title}")
    console.print(head, width=width)
    if page.text:
        console.print()
        console.print(Markdown(page.text, hyperlinks=False), width=width)


def listing(pages: Sequence[RulePage], console: Console) -> None:
    """Print all codes with their names and titles, by group, one line for each."""
    ordered = sorted(pages, key=lambda page: page.code)
    names = max((len(page.name) for page in ordered), default=0)
    for group, inside in groupby(ordered, key=lambda page: page.code[:3]):
        console.print(Text(GROUPS.get(group, group), style="bold"), soft_wrap=True)
        for page in inside:
            line = Text.assemble(f"  {page.code}  ", f"{page.name:<{names}}  ", (page.title, "dim"))
            if console.is_terminal:
                line.truncate(min(console.width, WIDEST), overflow="ellipsis")
            line.rstrip()
            console.print(line, soft_wrap=True)
