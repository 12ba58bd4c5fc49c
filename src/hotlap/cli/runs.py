"""``hotlap runs``: what is recorded under this directory, and making room."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from hotlap.errors import WrongUse
from hotlap.runs.store import KEEP_BYTES, KEEP_RUNS, StoredRun, open_store

POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
NOTHING: Final = "No runs recorded here. To record one: hotlap run train.py"


@click.group(name="runs", help="List the recorded runs, or remove old ones.")
def command() -> None:
    """Run before ``list`` and ``prune``; does nothing."""


@command.command(name="list", help="List the runs recorded from this directory, newest last.")
def list_runs() -> None:
    """Print one line per run, or how to record one when there is none."""
    stored = open_store(Path.cwd()).all()
    if not stored:
        click.echo(NOTHING)
        return
    for line in table(stored):
        click.echo(line)


@command.command(name="prune", help="Remove the oldest runs until the rest is within both limits.")
@click.option("--keep-runs", type=click.IntRange(min=1), default=KEEP_RUNS, show_default=True)
@click.option("--keep-size", default=f"{KEEP_BYTES >> 20}MiB", show_default=True, metavar="SIZE")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
def prune(keep_runs: int, keep_size: str, dry_run: bool) -> None:
    """Remove the oldest runs beyond a count and a total size, and list them."""
    keep_bytes = size_of(keep_size)
    removed = open_store(Path.cwd()).prune(keep_runs, keep_bytes, dry_run)
    for line in table(removed):
        click.echo(line)
    freed = in_words(sum(run.size_bytes for run in removed))
    runs = "1 run" if len(removed) == 1 else f"{len(removed)} runs"
    click.echo(f"{'Would remove' if dry_run else 'Removed'} {runs}, {freed}.")


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
    """Return the bytes that a size like ``500MB``, ``2GiB`` or ``4096`` means.

    Raises WrongUse when the words are no size.
    """
    found = re.fullmatch(r"\s*(\d{1,20}(?:\.\d+)?)\s*([KMGT]?)(I?)B?\s*", words.upper())
    if found is None or (found[3] and not found[2]):
        raise WrongUse(f"--keep-size {words!r} is no size; write it as 500MB or 2GiB")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** POWERS[found[2]])


def in_words(size_bytes: int) -> str:
    """Return bytes with a decimal unit, such as ``1.4 MB``."""
    size, unit = float(size_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
