"""The knobs' pages under docs/knobs, written from the knobs' own docstrings."""

from __future__ import annotations

import inspect
from pathlib import Path

from hotlap.knobs.catalogue import Knob, all_knobs

RENEW = "docs/knobs is not what the knobs say; write it anew: make rules"
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "knobs"
HEAD = """# Knobs

What hotlap can change in a training without a change to its script, one thing per knob. In the
order in which they are put on. Written by `make rules`.

The class says what a knob does to the numbers, the mildest first:

| class | the numbers are |
|---|---|
| identical | bit for bit the same |
| rounding | the same mathematics in another order: the last bits differ |
| resampled | the same distribution, with other random draws |
| reduced | of lower precision |
| learning | others: what is learned changes |

| knob | what it does | makes shorter | class |
|---|---|---|---|
"""


def title_of(knob: Knob) -> str:
    """Return what a knob does, in the words of its page's heading."""
    return inspect.cleandoc(knob.__doc__).splitlines()[0].partition(": ")[2]


def page_of(knob: Knob) -> str:
    """Return a knob's page."""
    head, _, text = inspect.cleandoc(knob.__doc__).partition("\n")
    classes = " or ".join(knob.NUMERICS)
    return f"{head}\n\nMakes shorter: `{knob.PHASE}`. Class: {classes}.\n\n{text.strip()}\n"


def files() -> dict[str, str]:
    """Return the text of every file that belongs into the folder, by its name."""
    knobs = list(all_knobs())
    rows = [
        f"| [{one.NAME}]({one.NAME}.md) | {title_of(one)} | `{one.PHASE}` "
        f"| {' or '.join(one.NUMERICS)} |\n"
        for one in knobs
    ]
    return {"README.md": HEAD + "".join(rows), **{f"{one.NAME}.md": page_of(one) for one in knobs}}


def write(folder: Path) -> None:
    """Write the files, and remove pages of knobs that are gone."""
    folder.mkdir(exist_ok=True)
    wanted = files()
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(FOLDER)
