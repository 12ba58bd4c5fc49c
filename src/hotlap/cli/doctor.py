"""``hotlap doctor``: what this machine and environment offer and lack."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hotlap import __version__
from hotlap.errors import WrongUse


@click.command(name="doctor")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    help="Write the checks as JSON to FILE; - writes them to stdout instead of the page.",
)
@click.option(
    "--python",
    metavar="EXE",
    help="The Python whose torch and decoders to look at; else the first on PATH.",
)
def command(paths: tuple[str, ...], json_file: str | None, python: str | None) -> None:
    """Say what this machine offers to a training, and lacks.

    PATHS are folders with training data (the current one if none is given): what kind of disk lies
    behind each is looked up. Nothing is changed; torch is imported in a child process.
    """
    from rich.console import Console

    from hotlap.machine.checks.catalogue import judge
    from hotlap.machine.checks.surroundings import gather
    from hotlap.machine.facts import machine_facts
    from hotlap.report.doctor import document, show

    if json_file not in (None, "-") and not Path(json_file).absolute().parent.is_dir():
        raise WrongUse(f"--json {json_file}: its folder does not exist; make it or name another")
    where = paths or (".",)
    errors = Console(stderr=True)
    with errors.status("") as status:
        checks = judge(gather(where, python, lambda text: status.update(f"{text} ...")))
    if json_file is not None:
        found = document(checks, machine_facts(where), __version__)
        text = json.dumps(found, indent=2) + "\n"
        if json_file == "-":
            click.echo(text, nl=False)
            return
        try:
            Path(json_file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise WrongUse(
                f"--json {json_file}: cannot be written ({error.strerror}); name another file"
            ) from error
    show(checks, Console())
