"""``hotlap compare``: is the second of two runs faster than the first?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click

from hotlap.cli.report import in_colour, in_unicode, write
from hotlap.errors import DONE, NotMeasurable


@click.command(name="compare")
@click.argument("before", metavar="RUN")
@click.argument("after", metavar="RUN")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON to FILE; - for stdout.")
def command(before: str, after: str, json_file: str | None) -> int:
    """Say whether the second run is faster than the first, by how much, and in which phase.

    Runs are named by their ids or paths. What two runs cannot tell is said beside.
    """
    from hotlap.account.comparison import compare
    from hotlap.account.summarise import summarise
    from hotlap.report.comparison import comparison_json, comparison_page
    from hotlap.runs.reading import read_run
    from hotlap.runs.store import open_store

    store = open_store(Path.cwd())
    first, second = (read_run(_plain_run(store.find(name))) for name in (before, after))
    runs = summarise(first), summarise(second)
    found = compare((first, second), runs)
    if json_file is not None:
        write(json.dumps(comparison_json(found, runs), indent=2, allow_nan=False) + "\n", json_file)
    if json_file != "-":
        width = shutil.get_terminal_size((90, 24)).columns
        text = comparison_page(found, runs, width, in_colour(), in_unicode())
        click.echo(text, nl=False, color=in_colour())
    return NotMeasurable.exit_code if found.word == "not comparable" else DONE


def _plain_run(path: Path) -> Path:
    """Return the folder of a run; raises NotMeasurable for one that holds a diagnosis."""
    from hotlap.cli.diagnose import stored_diagnosis

    if stored_diagnosis(path) is not None:
        raise NotMeasurable(
            f"{path.name} is a diagnosis, whose trials are short and watched closely; compare two "
            "runs of hotlap run"
        )
    return path
