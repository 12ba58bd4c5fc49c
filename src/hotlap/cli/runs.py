"""``hotlap runs``: what is recorded under this directory, and making room."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hotlap.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotlap.runs.store import StoredRun

KEEP_RUNS: Final = 50
KEEP_SIZE: Final = "2GB"
UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
NOTHING: Final = "No runs recorded here. To record one: hotlap run train.py"


@click.group(name="runs", help="List the recorded runs, or remove old ones.")
def command() -> None:
    """Run before ``list`` and ``prune``; does nothing."""


@command.command(name="list", help="List the runs recorded from this directory, newest last.")
def list_runs() -> None:
    """Print one line per run, or how to record one when there is none."""
    from hotlap.runs.store import open_store

    stored = open_store(Path.cwd()).list()
    if not stored:
        click.echo(NOTHING)
        return
    for line in table(stored):
        click.echo(line)


@command.command(name="prune", help="Remove the oldest runs until the rest is within both limits.")
@click.option("--keep-runs", type=click.IntRange(min=0), default=KEEP_RUNS, show_default=True)
@click.option("--keep-size", default=KEEP_SIZE, show_default=True, metavar="SIZE")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
def prune(keep_runs: int, keep_size: str, dry_run: bool) -> None:
    """Remove the oldest runs beyond a count and a total size, and list them."""
    from hotlap.runs.store import open_store

    keep_bytes = size_of(keep_size)
    removed = open_store(Path.cwd()).prune(keep_runs, keep_bytes, dry_run)
    for line in table(removed):
        click.echo(line)
    freed = in_words(sum(run.size_bytes for run in removed))
    click.echo(f"{'Would remove' if dry_run else 'Removed'} {len(removed)} runs, {freed}.")


def table(stored: Sequence[StoredRun]) -> list[str]:
    """Return runs as lines of aligned columns below a heading; [] when there are none."""
    if not stored:
        return []
    rows = [("ID", "STARTED", "STEPS", "EXIT", "SIZE", "COMMAND")]
    for run in stored:
        rows.append(
            (
                run.id,
                run.started,
                "-" if run.steps is None else str(run.steps),
                "-" if run.exit_code is None else str(run.exit_code),
                in_words(run.size_bytes),
                shlex.join(run.command),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "  ".join([cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)])
        + f"  {row[-1]}"
        for row in rows
    ]


def size_of(words: str) -> int:
    """Return the bytes that a size like ``500MB``, ``2GB`` or ``4096`` means.

    Raises WrongUse when the words are no size.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", words.upper())
    if found is None:
        raise WrongUse(f"--keep-size {words!r} is no size; write it as 500MB or 2GB")
    return int(float(found[1]) * UNITS[found[2]])


def in_words(size_bytes: int) -> str:
    """Return bytes with a decimal unit, such as ``1.4 MB``."""
    size, unit = float(size_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
