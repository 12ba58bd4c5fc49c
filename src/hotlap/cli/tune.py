"""``hotlap tune``: try what may help, keep what is proven, and write it down as a plan."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hotlap.cli.diagnose import job_s, ready, refuse_missing_folder
from hotlap.cli.report import in_colour, in_unicode, write
from hotlap.cli.trial_progress import progress_on
from hotlap.errors import DONE, INTERRUPTED, NotMeasurable, UnreadableRun, WrongUse
from hotlap.runs import layout
from hotlap.runs.store import Store, open_store, write_manifest
from hotlap.values.knob import NUMERICS

if TYPE_CHECKING:
    from hotlap.values.facts import Facts
    from hotlap.values.tuning import Tuning

SETTINGS: Final = {"ignore_unknown_options": True, "allow_interspersed_args": False}
KIND: Final = "tuning"
TUNING_FILE: Final = "tuning.json"
DEFAULT_PLAN: Final = "hotlap.plan.toml"
_LEAST_S: Final = 120.0


@click.command(
    name="tune",
    context_settings=SETTINGS,
    help="Try what may make a training faster, keep what is proven to, and write it down as a "
    "plan for `hotlap run --plan`. The command is run many times for a short while; what it writes "
    "meanwhile is thrown away. It begins at the first word that is no option of ours.",
)
@click.option(
    "--numerics",
    type=click.Choice(NUMERICS),
    default="resampled",
    show_default=True,
    help="The strongest change of the numbers that may be applied; what is stronger is measured "
    "and offered.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=_LEAST_S),
    metavar="SECONDS",
    help="Wall time of all runs; default: 900.",
)
@click.option(
    "--horizon",
    type=click.IntRange(min=1),
    metavar="STEPS",
    help="Steps of a whole run: what a longer start-up is charged against.",
)
@click.option("--steps", type=click.IntRange(min=8), metavar="N", help="Measured steps per run.")
@click.option(
    "-o",
    "--output",
    "plan_file",
    default=DEFAULT_PLAN,
    show_default=True,
    metavar="PLAN",
    help="File for the plan.",
)
@click.option(
    "--patch",
    "patch_file",
    metavar="FILE",
    help="Also write the plan as a change of the script: a unified diff, as far as one can be.",
)
@click.option("--resume", is_flag=True, help="Go on with an earlier tuning of the same command.")
@click.option(
    "--try",
    "insisted",
    multiple=True,
    metavar="KNOB=VALUE",
    help="Try this first, also where it is thought not to help.",
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
    numerics: str,
    budget: float | None,
    horizon: int | None,
    steps: int | None,
    plan_file: str,
    resume: bool,
    insisted: tuple[str, ...],
    **rest: Any,
) -> int:
    """Tune a command; return 0 with or without a plan, 3 when nothing could be measured."""
    from hotlap.tune.session import DEFAULT_BUDGET_S, Order

    words: tuple[str, ...] = rest["words"]
    if words and words[0].startswith("-") and words[0] not in ("-m", "--"):
        raise WrongUse(
            f"{words[0]!r} is no option of hotlap tune; options of the command go after its name"
        )
    for file in (rest["json_file"], rest["patch_file"], rest["html_file"], plan_file):
        refuse_missing_folder(file)
    if rest["html_file"] is not None:
        from hotlap.report.html_file import refuse_without_libraries

        refuse_without_libraries()
    order = Order(budget or DEFAULT_BUDGET_S, numerics, horizon, steps, _insisted(insisted))
    files = Files(Path(plan_file), rest["json_file"], rest["patch_file"], rest["html_file"])
    return tune_command(words, order, files, rest["allow_writes"], resume)


@dataclass(frozen=True)
class Files:
    """Where results are written: the plan, and JSON, a diff and a page if they were asked for."""

    plan: Path
    json: str | None = None
    patch: str | None = None
    html: str | None = None


def tune_command(
    words: tuple[str, ...],
    order: Any,
    files: Files,
    allow_writes: bool = False,
    resume: bool = False,
) -> int:
    """Tune a command, write its plan and print what was found.

    words: the command as the user wrote it. order: a ``tune.session.Order``.
    """
    from hotlap.experiment.trials import Lab
    from hotlap.launch.trial import way_here
    from hotlap.tune import plan_file as plans
    from hotlap.tune.patch import patch
    from hotlap.tune.session import tune

    argv, environ = ready(words, "tune")
    if files.plan.exists():
        plans.read(files.plan)  # what is no plan of ours is not written over
    most_s = job_s(environ, time.time())
    if most_s is not None:
        order = replace(order, budget_s=min(order.budget_s, most_s))
    way = "open" if allow_writes else way_here(Path.cwd(), environ)
    store = open_store(Path.cwd())
    run, manifest = _folder(store, argv, environ, resume)
    with progress_on(sys.stderr) as progress:
        lab = Lab(argv, environ, Path.cwd(), run, way, progress)
        try:
            tuning = tune(lab, order)
        finally:
            manifest.update(exit_ns=time.monotonic_ns(), exit_code=DONE)
            with contextlib.suppress(OSError):
                write_manifest(run, manifest)
    written = None
    if tuning.plan is not None and not lab.is_interrupted:
        try:
            plans.write(files.plan, tuning.plan)
        except OSError as error:
            raise WrongUse(f"-o {files.plan}: cannot be written ({error.strerror})") from error
        written = str(files.plan)
    if files.patch is not None and tuning.plan is not None:
        write(patch(tuning.plan, _sources(argv, tuning.baseline[0])), files.patch, "--patch")
    show(tuning, run, files, written, shlex.join(words))
    manifest["steps"] = tuning.baseline[0].run.trainers[0].step.steps
    with contextlib.suppress(OSError):
        write_manifest(run, manifest)
    store.prune()
    return INTERRUPTED if lab.is_interrupted else DONE


def _folder(
    store: Store, argv: list[str], environ: dict[str, str], resume: bool
) -> tuple[Path, dict[str, Any]]:
    """Return the folder of a new tuning, or of the one to take up, with its manifest.

    Raises WrongUse where there is none to take up, NotMeasurable where nothing can be recorded.
    """
    from hotlap.experiment.trials import manifest_of

    if resume:
        found = _earlier(store, argv)
        if found is None:
            raise WrongUse(
                "--resume: there is no tuning of this command here; start one without --resume"
            )
        return found
    run = store.new()
    manifest = {**manifest_of(run, argv, Path.cwd(), environ), "kind": KIND, "sources": _seen(argv)}
    try:
        write_manifest(run, manifest)
    except OSError as error:
        raise NotMeasurable(f"nothing can be recorded in {run}: {error}") from error
    return run, manifest


def _earlier(store: Store, argv: list[str]) -> tuple[Path, dict[str, Any]] | None:
    """Return the latest tuning of this command and script, as they are now."""
    from hotlap.values.secrets import redacted

    wanted = list(redacted(list(argv)))
    for path in sorted(store.runs.iterdir(), reverse=True) if store.runs.is_dir() else ():
        try:
            manifest = json.loads((path / layout.MANIFEST).read_text())
        except (OSError, ValueError):
            continue
        if manifest.get("kind") != KIND or manifest.get("command") != wanted:
            continue
        if manifest.get("cwd") == str(Path.cwd()) and manifest.get("sources") == _seen(argv):
            return path, manifest
    return None


def _seen(argv: list[str]) -> str | None:
    """Return a hash of the script: what was measured of another one is no use."""
    import hashlib

    from hotlap.launch.command import script_of

    script = script_of(argv)
    if script is None:
        return None
    with contextlib.suppress(OSError):
        return hashlib.sha256(Path(script).read_bytes()).hexdigest()
    return None


def _sources(argv: list[str], facts: Facts) -> dict[str, str]:
    """Return the text of the user's files by path below the start directory, the script first."""
    from hotlap.launch.command import script_of

    script = script_of(argv)
    names = [] if script is None else [os.path.relpath(script)]
    names += [one.place.file for one in facts.settings]
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        if not os.path.isabs(name) and not name.startswith(".."):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                found[name] = Path(name).read_text(encoding="utf-8")
    return found


def _insisted(words: tuple[str, ...]) -> dict[str, Any]:
    """Return values by knob of what --try names; raises WrongUse for what is no such thing."""
    from hotlap.knobs import catalogue

    found: dict[str, Any] = {}
    for word in words:
        knob, sign, value = word.partition("=")
        if not sign or knob not in catalogue.KNOBS:
            raise WrongUse(
                f"--try {word}: name a knob and a value, as loader_workers=2; there are "
                f"{', '.join(sorted(catalogue.KNOBS))}"
            )
        try:
            found[knob] = json.loads(value.lower() if value in ("True", "False") else value)
        except ValueError:
            found[knob] = value
    return found


def show(
    tuning: Tuning, run: Path, files: Files, written: str | None, command: str | None = None
) -> None:
    """Print a tuning, and write the files that were asked for; its folder keeps it all.

    written: where the plan was written; None where it was not. command: as the user wrote it.
    """
    from hotlap.experiment import stored
    from hotlap.report.tuning_json import tuning_json
    from hotlap.report.tuning_page import tuning_page

    with contextlib.suppress(OSError):
        text = tuning_page(tuning, file=written, command=command)
        (run / layout.REPORT).write_bytes(text.encode("utf-8", "backslashreplace"))
        kept = {"file": written, "command": command, "tuning": stored.packed(tuning)}
        (run / TUNING_FILE).write_text(json.dumps(kept), encoding="utf-8")
    if files.json is not None:
        write(json.dumps(tuning_json(tuning), indent=2, allow_nan=False) + "\n", files.json)
    if files.html is not None:
        from hotlap.report.tuning_html import tuning_html

        write(tuning_html(tuning), files.html, "--html")
    if "-" not in (files.json, files.html):
        width = shutil.get_terminal_size((90, 24)).columns
        page = tuning_page(tuning, width, in_colour(), in_unicode(), written, command)
        click.echo(page, nl=False, color=in_colour())


def show_again(run: Path, json_file: str | None, html_file: str | None) -> None:
    """Show a tuning that lies in a folder; raises UnreadableRun where it is damaged."""
    from hotlap.experiment import stored

    try:
        kept = json.loads((run / TUNING_FILE).read_text(encoding="utf-8"))
        tuning = stored.unpacked(kept["tuning"])
        written, words = kept["file"], kept["command"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableRun(f"the tuning in {run} cannot be read: {error}") from error
    show(tuning, run, Files(Path(), json_file, None, html_file), written, words)
