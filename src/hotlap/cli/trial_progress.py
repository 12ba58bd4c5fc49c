"""How far the trials are: a live line on a terminal, one line per trial anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from hotlap.experiment.trials import Progress


@contextmanager
def progress_on(stream: TextIO) -> Iterator[Progress]:
    """Show trials on a stream while the context lasts."""
    if not stream.isatty():
        yield _Lines(stream)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("of about {task.total:.0f} s"),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as bars:
        yield _Live(bars)


class _Lines:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def begin(self, name: str, says: str, about_s: float) -> None:
        """Say what begins."""
        self._say(f"hotlap: {name}: {says}, about {about_s:.0f} s")

    def tick(self) -> None:
        """Say nothing."""

    def end(self, name: str, says: str, took_s: float) -> None:
        """Say how it ended."""
        self._say(f"hotlap: {name}: {says}, {took_s:.1f} s")

    def _say(self, text: str) -> None:
        click.echo(text, file=self._stream)


class _Live:
    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task: int | None = None

    def begin(self, name: str, says: str, about_s: float) -> None:
        """Show a bar that fills in the time that the trial may take."""
        said = says if name in says else f"{name}: {says}"
        self._task = self._bars.add_task(said, total=max(1.0, about_s))

    def tick(self) -> None:
        """Move the bar on."""
        if self._task is None:
            return
        task = self._bars.tasks[-1]
        # It stands still short of its end: an estimate is no promise.
        self._bars.update(task.id, completed=min(task.elapsed or 0.0, 0.99 * (task.total or 1.0)))

    def end(self, name: str, says: str, took_s: float) -> None:
        """Leave one line about it."""
        if self._task is not None:
            self._bars.remove_task(self._bars.tasks[-1].id)
            self._task = None
        self._bars.console.print(f"{name}: {says}, {took_s:.1f} s", markup=False, highlight=False)
