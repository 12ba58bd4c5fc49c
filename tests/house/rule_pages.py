"""The rules' pages under docs/rules, written from the rules' own docstrings."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from hotlap.cli.explain import page_of, rules
from hotlap.report.rule_page import GROUPS, in_markdown

RENEW = "docs/rules is not what the rules say; write it anew: make rules"
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "rules"
HEAD = """# Rules

What `hotlap diagnose` looks for. Each page is what `hotlap explain CODE` prints: what the cause
is, how it is measured, when the finding is wrong, and what to do. Written by `make rules`.
"""


def files() -> dict[str, str]:
    """Return the text of every file that belongs into the folder, by its name."""
    pages = sorted((page_of(module) for module in rules()), key=lambda page: page.code)
    index = [HEAD]
    for group, inside in groupby(pages, key=lambda page: page.code[:3]):
        rows = [
            f"| [{page.code}]({page.code}.md) | {page.name} | {page.title} |" for page in inside
        ]
        head = f"## {GROUPS[group].capitalize()}\n\n| code | name | says |\n|---|---|---|"
        index.append("\n".join([head, *rows]) + "\n")
    made = {f"{page.code}.md": in_markdown(page) for page in pages}
    return {"README.md": "\n".join(index), **made}


def write(folder: Path) -> None:
    """Write the files, and remove pages of rules that are gone."""
    folder.mkdir(exist_ok=True)
    wanted = files()
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(FOLDER)
