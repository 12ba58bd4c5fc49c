"""``hotlap diagnose``: find out by experiment why a training is slow."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from hotlap.cli.report import in_colour, in_unicode, write
from hotlap.cli.trial_progress import progress_on
from hotlap.errors import DONE, INTERRUPTED, NotMeasurable, WrongUse
from hotlap.launch.command import complete, resolve, script_of
from hotlap.launch.environ import rank_info, read_given_environ
from hotlap.runs import layout
from hotlap.runs.store import open_store, write_manifest
from hotlap.values.facts import Facts
from hotlap.values.finding import Diagnosis

_MARGIN_S: Final = 20.0
_LEAST_S: Final = 30.0
SETTINGS: Final = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command(
    name="diagnose",
    context_settings=SETTINGS,
    help="Find out by experiment why a training is slow. The command is run several times for a "
    "short while; what it writes meanwhile is thrown away. It begins at the first word that is "
    "no option of ours, as in hotlap run.",
)
@click.option("--steps", type=click.IntRange(min=4), metavar="N", help="Measured steps per window.")
@click.option(
    "--budget",
    type=click.FloatRange(min=1.0),
    metavar="SECONDS",
    help="Wall time of the whole diagnosis; default: three start-ups and a minute.",
)
@click.option(
    "--horizon",
    type=click.IntRange(min=1),
    metavar="STEPS",
    help="Steps of a whole run, as you would run it: what shares and speed-ups refer to.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write JSON to FILE; - for stdout.")
@click.option("--html", "html_file", metavar="FILE", help="Write one self-contained page to FILE.")
@click.option(
    "--allow-writes",
    is_flag=True,
    help="Run it also where its writes cannot be kept from your files.",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND...")
def command(
    steps: int | None,
    budget: float | None,
    horizon: int | None,
    json_file: str | None,
    html_file: str | None,
    allow_writes: bool,
    words: tuple[str, ...],
) -> int:
    """Diagnose a command; return 0, 3 when nothing could be measured, 130 after Ctrl-C."""
    from hotlap.experiment.measure import Ask

    if words and words[0].startswith("-") and words[0] not in ("-m", "--"):
        raise WrongUse(
            f"{words[0]!r} is no option of hotlap diagnose; options of the command go after its "
            "name"
        )
    for file in (json_file, html_file):
        refuse_missing_folder(file)
    if html_file is not None:
        from hotlap.report.diagnosis_html import refuse_without_libraries

        refuse_without_libraries()
    return diagnose(words, Ask(budget, steps, horizon), json_file, html_file, allow_writes)


def diagnose(
    words: Sequence[str],
    ask: Any,
    json_file: str | None,
    html_file: str | None,
    allow_writes: bool,
) -> int:
    """Diagnose a command and print what was found.

    words: the command as the user wrote it. ask: an ``experiment.measure.Ask``.
    """
    from hotlap.diagnose import judge, wishes
    from hotlap.experiment.measure import measure
    from hotlap.experiment.trials import Lab, manifest_of
    from hotlap.launch.trial import way_here

    argv, environ = ready(words, "diagnose")
    ask = replace(ask, most_s=job_s(environ, time.time()))
    way = "open" if allow_writes else way_here(Path.cwd(), environ)
    store = open_store(Path.cwd())
    run = store.new()
    manifest = {**manifest_of(run, argv, Path.cwd(), environ), "kind": "diagnosis"}
    try:
        write_manifest(run, manifest)
    except OSError as error:
        raise NotMeasurable(f"nothing can be recorded in {run}: {error}") from error
    with progress_on(sys.stderr) as progress:
        lab = Lab(argv, environ, Path.cwd(), run, way, progress)
        try:
            facts = measure(lab, ask, wishes)
        finally:
            manifest.update(exit_ns=time.monotonic_ns(), exit_code=DONE)
            with contextlib.suppress(OSError):
                write_manifest(run, manifest)
    facts = replace(facts, run=replace(facts.run, id=run.name))
    diagnosis = judge(facts)
    show(facts, diagnosis, run, json_file, html_file)
    if facts.run.trainers:
        manifest["steps"] = facts.run.trainers[0].step.steps
        with contextlib.suppress(OSError):
            write_manifest(run, manifest)
    store.prune()
    if lab.is_interrupted:
        return INTERRUPTED
    return DONE if any(one.step.steps for one in facts.run.trainers) else NotMeasurable.exit_code


def ready(words: Sequence[str], verb: str) -> tuple[list[str], dict[str, str]]:
    """Return the complete command and the user's environment, for a verb that runs trials.

    words: the command as the user wrote it. Raises WrongUse where there is no such command, or
    where this is one rank of a training that is under way.
    """
    environ = read_given_environ()
    if rank_info(environ) is not None:
        raise WrongUse(
            f"this is one rank of a training that is already under way; {verb} starts the ranks "
            f"itself: `hotlap {verb} torchrun … train.py`"
        )
    argv = complete(words, environ, verb)
    resolve(argv, environ)
    _refuse_missing_script(argv)
    return argv, environ


def job_s(environ: Mapping[str, str], now_s: float) -> float | None:
    """Return how long a batch system still lets us run; None where it does not say.

    now_s: seconds of the epoch. Raises NotMeasurable when that is too short for any trial.
    """
    try:
        end_s = float(environ["SLURM_JOB_END_TIME"])
    except (KeyError, ValueError):
        return None
    left_s = end_s - now_s - _MARGIN_S
    if left_s < _LEAST_S:
        raise NotMeasurable(
            f"this Slurm job ends in {max(0.0, end_s - now_s):.0f} s, too soon for a trial; ask "
            "for a longer one (--time)"
        )
    return left_s


def show(
    facts: Facts,
    diagnosis: Diagnosis,
    run: Path,
    json_file: str | None,
    html_file: str | None,
    name: str | None = None,
) -> None:
    """Print a diagnosis, and write the files that were asked for.

    run: the diagnosis' own folder, which gets the text too. name: what the user called it.
    """
    from hotlap.report.diagnosis_page import diagnosis_page

    width = shutil.get_terminal_size((90, 24)).columns
    with contextlib.suppress(OSError):
        text = diagnosis_page(facts, diagnosis)
        (run / layout.REPORT).write_bytes(text.encode("utf-8", "backslashreplace"))
    if json_file is not None:
        from hotlap.report.diagnosis_json import diagnosis_json

        whole = diagnosis_json(facts, diagnosis)
        write(json.dumps(whole, indent=2, allow_nan=False) + "\n", json_file)
    if html_file is not None:
        from hotlap.report.diagnosis_html import diagnosis_html

        write(diagnosis_html(facts, diagnosis), html_file, "--html")
    if json_file != "-":
        page = diagnosis_page(facts, diagnosis, width, in_colour(), in_unicode(), name)
        click.echo(page, nl=False, color=in_colour())


def stored_diagnosis(run: Path) -> tuple[Facts, Diagnosis] | None:
    """Return the facts that lie in a diagnosis' folder, judged anew; None if it is a plain run."""
    from hotlap.diagnose import judge
    from hotlap.experiment.measure import FACTS_FILE
    from hotlap.experiment.stored import load

    if not (run / FACTS_FILE).is_file():
        return None
    facts = load(run / FACTS_FILE)
    facts = replace(facts, run=replace(facts.run, id=run.name))
    return facts, judge(facts)


def _refuse_missing_script(argv: Sequence[str]) -> None:
    """Raise WrongUse where every trial would end at its first word, and a page would say so."""
    script = script_of(argv)
    if script is not None and not Path(script).exists():
        raise WrongUse(f"{script}: there is no such file; we are in {Path.cwd()}")


def refuse_missing_folder(file: str | None) -> None:
    """Raise WrongUse before the trials, not after them, where a file cannot be made."""
    if file is not None and file != "-" and not Path(file).absolute().parent.is_dir():
        raise WrongUse(f"{file}: there is no folder {Path(file).absolute().parent}")
