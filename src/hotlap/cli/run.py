"""``hotlap run``: train as usual, measured; a report after warm-up and one at the end."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import hotlap
from hotlap.errors import HotlapError, WrongUse
from hotlap.launch.child import Outcome, leave, run_child
from hotlap.launch.command import complete, resolve
from hotlap.launch.environ import (
    child_environ,
    rank_info,
    read_given_environ,
    recorded_environ,
)
from hotlap.runs import frames, layout
from hotlap.runs.recording import Recording
from hotlap.runs.store import Store, make_run, open_store, write_manifest
from hotlap.values.finding import Finding
from hotlap.values.handoff import Handoff
from hotlap.values.record import Record
from hotlap.values.secrets import redacted
from hotlap.values.summary import RunSummary

if TYPE_CHECKING:
    from hotlap.tune.choice import Applied

SETTINGS: Final = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_LOOK_EVERY_S: Final = 1.0
_NS: Final = 1_000_000_000


@click.command(
    name="run",
    context_settings=SETTINGS,
    help="Train as usual, measured. A word that ends in .py, or -m, gets python in front; "
    "anything else (torchrun, accelerate launch) is run as it stands. The report is printed to a "
    "terminal only; hotlap report shows it at any time.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Folder for the record of this run; default: a new one in .hotlap/runs.",
)
@click.option("--quiet", is_flag=True, help="Print nothing; the reports are in the run's folder.")
@click.option("--plan", "plan_file", metavar="FILE", help="Apply a plan that hotlap tune wrote.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND...")
def command(
    output: Path | None, quiet: bool, plan_file: str | None, words: tuple[str, ...]
) -> None:
    """Run a command, measured, and end as it ended."""
    if words and words[0].startswith("-") and words[0] not in ("-m", "--"):
        raise WrongUse(
            f"{words[0]!r} is no option of hotlap run; options of the command go after its name"
        )
    leave(train(words, output=output, quiet=quiet, plan=plan_file))


def train(
    words: Sequence[str],
    *,
    output: Path | None,
    quiet: bool,
    show_from: Path | None = None,
    plan: str | None = None,
) -> int:
    """Run a command, measured.

    words: the command as the user wrote it. output: folder for the record, None for a new one.
    quiet: print nothing. show_from: print the report of the whole run to stdout, for a reader who
    stands in this folder. plan: file of a plan to apply.
    Returns the command's own exit code, negative when a signal killed it. Raises WrongUse when no
    command could be started. When no record can be kept the command runs all the same.
    """
    environ = read_given_environ()
    argv = complete(words, environ)
    resolve(argv, environ)
    applied = None if plan is None else _applied(plan, environ)
    try:
        watch = _Watch(argv, environ, output, quiet, show_from, applied)
    except WrongUse:
        raise
    except (HotlapError, OSError) as error:
        click.echo(f"hotlap: this run is not measured: {error}", err=True)
        return run_child(argv, environ).exit_code
    outcome = run_child(
        argv,
        watch.environ,
        on_start=watch.started,
        on_poll=watch.look,
    )
    try:
        watch.ended(outcome)
    except KeyboardInterrupt:
        pass  # the command has ended; whoever is tired of waiting gets its exit code at once
    except Exception as error:
        click.echo(f"hotlap: the report could not be made: {error!r}", err=True)
    return outcome.exit_code


def _applied(plan: str, environ: Mapping[str, str]) -> Applied:
    from hotlap.tune.choice import applied_here

    return applied_here(plan, environ)


def site_folder() -> Path:
    """Return the folder that goes to the front of PYTHONPATH."""
    return Path(hotlap.__file__).resolve().parent / "inject" / "site"


class _Watch:
    """A run from outside: its folder, samples of the machine, and its two reports."""

    def __init__(
        self,
        argv: Sequence[str],
        environ: dict[str, str],
        output: Path | None,
        quiet: bool,
        show_from: Path | None,
        applied: Applied | None,
    ) -> None:
        self._store: Store | None = None
        if output is None:
            self._store = open_store(Path.cwd())
            self.run = self._store.new()
        else:
            self.run = make_run(output)
        self._name = None if output is None else str(output)
        if show_from is not None and show_from != Path.cwd():
            self._name = os.path.relpath(self.run, show_from)
        self._quiet = quiet
        self._show = show_from is not None
        self._samples = Recording(self.run / layout.MACHINE_FILE, "machine")
        self._sample: Callable[[], None] | None = None
        self._next_look = 0.0
        self._reported = False
        info = rank_info(environ)
        self._speaks = info is None or info.rank in (None, 0)
        handoff = Handoff(
            run_dir=str(self.run),
            package_dir=str(Path(hotlap.__file__).resolve().parent),
            start_dir=str(Path.cwd()),
            started_ns=time.monotonic_ns(),
            knobs={} if applied is None else dict(applied.settings),
        )
        self.environ = child_environ(environ, site_folder(), self.run / layout.HANDOFF)
        self.environ.update({} if applied is None else applied.environment)
        (self.run / layout.HANDOFF).write_text(handoff.to_json())
        self._manifest: dict[str, Any] = {
            "format": 1,
            "id": self.run.name,
            "hotlap_version": hotlap.__version__,
            "command": list(redacted(list(argv))),
            "cwd": str(Path.cwd()),
            "host": socket.gethostname(),
            "started": datetime.now().astimezone().isoformat(timespec="seconds"),
            "launcher_pid": os.getpid(),
            "environment": recorded_environ(environ),
            "spawn_ns": time.monotonic_ns(),
            "exit_ns": None,
            "exit_code": None,
        }
        if applied is not None:
            self._manifest["plan"] = {
                "file": Path(applied.plan_file).name,
                "knobs": dict(applied.settings),
                "left_out": dict(applied.left_out),
                "differences": list(applied.differences),
                "step_ns": applied.plan.step_ns,
            }
        write_manifest(self.run, self._manifest)

    def started(self, pid: int) -> None:
        """The command runs: look at the machine once, then sample it."""
        from hotlap.launch.sampling import Sampling
        from hotlap.machine.facts import machine_facts

        self._manifest["machine"] = machine_facts([Path.cwd()])
        write_manifest(self.run, self._manifest)
        sampling = Sampling.of_tree(self._append, pid)
        self._sample = sampling.tick

    def look(self) -> None:
        """Called twice a second: sample, and report when the steps are steady."""
        if self._sample is not None:
            self._sample()
        now = time.monotonic()
        if self._reported or not self._speaks or now < self._next_look:
            return
        begun = now
        record = self._read()
        if report_is_due(record, time.monotonic_ns()):
            self._reported = True
            self._report(record, at_start=True)
        # Looking may cost a fiftieth of the time, however large the record has become.
        self._next_look = now + max(_LOOK_EVERY_S, 50 * (time.monotonic() - begun))

    def ended(self, outcome: Outcome) -> None:
        """The command has ended: complete the record and report the whole run."""
        self._manifest["spawn_ns"] = outcome.spawn_ns
        self._manifest["exit_ns"] = outcome.exit_ns
        self._manifest["exit_code"] = outcome.exit_code
        if outcome.poll_fault:
            self._manifest["fault"] = outcome.poll_fault
        write_manifest(self.run, self._manifest)
        summary = self._report(self._read(), at_start=False)
        if summary.trainers:
            self._manifest["steps"] = summary.trainers[0].step.steps
            write_manifest(self.run, self._manifest)
        if self._store is not None:
            self._store.prune()

    def _append(self, sample: dict[str, Any]) -> None:
        self._samples.add(frames.encode_json("smpl", sample))
        self._samples.flush()

    def _read(self) -> Record:
        from hotlap.runs.reading import read_run

        return read_run(self.run)

    def _report(self, record: Record, at_start: bool) -> RunSummary:
        """Write the report to the run's folder, and to a terminal in one write."""
        from hotlap.report.startup import startup
        from hotlap.report.whole import whole

        summary = summary_of(record)
        render = partial(
            startup if at_start else whole, name=self._name, suspected=suspected(summary)
        )
        with contextlib.suppress(OSError):
            text = render(summary)
            # A file's name need not be UTF-8, and the locale's encoding need not take ours.
            (self.run / layout.REPORT).write_bytes(text.encode("utf-8", "backslashreplace"))
        if self._show and not at_start:
            stream, wanted = sys.stdout, True
        else:
            stream, wanted = sys.stderr, sys.stderr.isatty() and self._speaks
        if wanted and not self._quiet:
            _write(stream, render, summary)
        return summary


def summary_of(record: Record) -> RunSummary:
    """Return the account of a record; when nobody trained, with the reason."""
    from hotlap.account.summarise import summarise
    from hotlap.launch.absence import explain

    summary = summarise(record)
    if any(one.step.steps for one in summary.trainers):
        return summary
    return replace(summary, absence=explain(record, record.exit_code) or summary.absence)


def suspected(summary: RunSummary) -> tuple[Finding, ...]:
    """Return the causes that one run suggests without any experiment, ranked."""
    from hotlap.diagnose import judge
    from hotlap.values.facts import Facts

    return judge(Facts(run=summary, whole_run=summary.horizon_steps is not None)).findings


def report_is_due(record: Record, now_ns: int) -> bool:
    """Tell whether the start-up report should come now.

    It comes at 50 steps and 5 seconds after warm-up, at the latest 30 seconds after step 1.
    """
    from hotlap.account.summarise import summarise

    trainers = [one for one in record.processes if one.ticks and one.first_step_ns is not None]
    if not trainers:
        return False
    first = min(trainers, key=lambda one: one.rank or 0)
    since_first = now_ns - (first.first_step_ns or now_ns)
    if since_first >= 30 * _NS:
        return True
    if since_first < 5 * _NS or len(first.ticks) < 50:
        return False
    step = summarise(record).trainers[0].step
    warm = min(round(step.warm_up_steps * step.ticks_per_step), len(first.ticks) - 1)
    steady_ns = now_ns - first.ticks[warm].end_ns
    return step.steps - step.warm_up_steps >= 50 and steady_ns >= 5 * _NS


def _write(stream: Any, render: Callable[..., str], summary: RunSummary) -> None:
    """Print a report in one write, so that it does not mix with the command's own output."""
    import shutil

    is_terminal = stream.isatty()
    width = shutil.get_terminal_size((90, 24)).columns if is_terminal else 90
    unicode = "utf" in (getattr(stream, "encoding", None) or "").lower()
    colour = is_terminal and "NO_COLOR" not in os.environ
    text = "\n" + render(summary, width, colour, unicode) + "\n"
    with contextlib.suppress(OSError):
        stream.flush()
        stream.write(text)
        stream.flush()
