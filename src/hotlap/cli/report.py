"""``hotlap report``: the report of a run, again."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import click

from hotlap.errors import WrongUse


@click.command(name="report")
@click.argument("run", required=False, metavar="[RUN]")
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    help="Write the report as JSON to FILE; - writes it to stdout instead of the text.",
)
@click.option("--html", "html_file", metavar="FILE", help="Write one self-contained page to FILE.")
def command(run: str | None, json_file: str | None, html_file: str | None) -> None:
    """Show the report of a run or a diagnosis again: by its id, or by its path; the latest if none
    is given.

    A run that still goes on is shown up to its last record. A diagnosis is judged anew, by the
    rules of this version.
    """
    from hotlap.cli.diagnose import show, stored_diagnosis
    from hotlap.cli.run import summary_of, suspected
    from hotlap.cli.tune import TUNING_FILE, show_again
    from hotlap.runs.reading import read_run
    from hotlap.runs.store import open_store

    path = open_store(Path.cwd()).find(run)
    if (path / TUNING_FILE).is_file():
        show_again(path, json_file, html_file)
        return
    if (diagnosed := stored_diagnosis(path)) is not None:
        show(*diagnosed, path, json_file, html_file, run)
        return
    summary = summary_of(read_run(path))
    if html_file is not None:
        from hotlap.report.diagnosis_html import run_html

        write(run_html(summary, suspected(summary)), html_file, "--html")
        if html_file == "-":
            return
    if json_file is not None:
        from hotlap.report.json_form import to_json

        text = json.dumps(to_json(summary), indent=2, allow_nan=False) + "\n"
        write(text, json_file)
        if json_file == "-":
            return
    from hotlap.report.whole import whole

    width = shutil.get_terminal_size((90, 24)).columns
    text = whole(summary, width, in_colour(), in_unicode(), run, suspected(summary))
    click.echo(text, nl=False, color=in_colour())


def write(text: str, file: str, option: str = "--json") -> None:
    """Write text to a file, or to stdout for ``-``; raises WrongUse when it cannot be written.

    option: what named the file.
    """
    if file == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise WrongUse(
            f"{option} {file}: cannot be written ({error.strerror}); name another file"
        ) from error


def in_colour() -> bool:
    """Tell whether stdout is a terminal that shows colours (no-color.org: ``NO_COLOR``)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def in_unicode() -> bool:
    """Tell whether stdout takes block characters."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
