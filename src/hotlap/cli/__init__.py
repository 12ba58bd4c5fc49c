"""The command line: one verb per file, and nothing of a verb is imported before it is called.

``VERBS`` is the whole list. ``main`` is the only place that turns an error into text.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from hotlap import __version__
from hotlap.errors import DONE, INTERRUPTED, HotlapError, NotMeasurable, OurFault, WrongUse


class Verb(NamedTuple):
    """Where a verb lives, and its line in ``hotlap --help``."""

    module: str
    says: str


VERBS: Final[dict[str, Verb]] = {
    "compare": Verb("hotlap.cli.compare", "Say whether one run is faster than another."),
    "demo": Verb("hotlap.cli.demo", "Measure a training on real photographs that hotlap brings."),
    "diagnose": Verb("hotlap.cli.diagnose", "Find out by experiment why a training is slow."),
    "doctor": Verb("hotlap.cli.doctor", "Say what this machine offers to a training, and lacks."),
    "explain": Verb("hotlap.cli.explain", "Say what a finding means, and what to do about it."),
    "report": Verb("hotlap.cli.report", "Show the report of a run again."),
    "run": Verb("hotlap.cli.run", "Train as usual, measured."),
    "runs": Verb("hotlap.cli.runs", "List the recorded runs, or remove old ones."),
    "tune": Verb("hotlap.cli.tune", "Try what may help, keep what is proven, write a plan."),
}
"""Sorted by name. Each module has a click command called ``command``."""


_NO_ROOM: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF))
COMPLETE: Final = "_HOTLAP_COMPLETE"
"""Set by the shell when it asks what may follow; the name is click's for a program ``hotlap``."""


class LazyGroup(click.Group):
    """A group whose verbs are imported when they are called, and not to list them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all verbs."""
        return list(VERBS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import the verb and return its command; None when there is no such verb."""
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        command: click.Command = import_module(verb.module).command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the list of verbs from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.says) for name, verb in VERBS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what may follow ``hotlap``, from the table alone."""
        verbs = [
            CompletionItem(name, help=verb.says)
            for name, verb in VERBS.items()
            if name.startswith(incomplete)
        ]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; raises WrongUse with what was probably meant when there is none."""
        first = args[0] if args else ""
        if first not in VERBS and not first.startswith("-") and not ctx.resilient_parsing:
            raise WrongUse(f"{first!r} is no verb of hotlap; {_probably(first)}")
        return super().resolve_command(ctx, args)


def _probably(word: str) -> str:
    """Return what to type instead of a word that is no verb."""
    if word.endswith(".py"):
        return f"to measure it: hotlap run {word}"
    # Only imported for a mistake.
    from difflib import get_close_matches

    if near := get_close_matches(word, VERBS):
        return f"did you mean {' or '.join(near)}?"
    return f"there are {', '.join(VERBS)}; to measure a command: hotlap run {word} …"


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Show where the time of a PyTorch training goes, without touching its script.",
    epilog="Start with: hotlap run train.py",
)
@click.version_option(__version__, prog_name="hotlap")
def hotlap() -> None:
    """Run before every verb; does nothing."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    words: the words after ``hotlap``; None takes them from ``sys.argv``.
    """
    words = sys.argv[1:] if words is None else list(words)
    try:
        code = _invoke(words)
        # Flushed here, where a closed pipe can still be answered.
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return WrongUse.exit_code
    except click.ClickException as error:
        click.echo(f"hotlap: {_in_words(error, words)}", err=True)
        return WrongUse.exit_code
    except HotlapError as error:
        click.echo(f"hotlap: {error}", err=True)
        return error.exit_code
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _reader_left():
            return DONE
        if why := _no_room_for_output(error):
            click.echo(f"hotlap: nothing can be written to stdout ({why})", err=True)
            return WrongUse.exit_code
        click.echo(traceback.format_exc(), err=True, nl=False)
        click.echo("hotlap: this is a fault of hotlap itself, shown above", err=True)
        return OurFault.exit_code
    return code


def _invoke(words: list[str]) -> int:
    """Run the verb that the words name; return its exit code, 0 if it returns none."""
    _refuse_windows()
    if COMPLETE in os.environ:
        hotlap.main(prog_name="hotlap")
    # Not by hotlap.main, which would answer any broken pipe by itself, and with 1.
    try:
        with hotlap.make_context("hotlap", words) as context:
            code = hotlap.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    return code if isinstance(code, int) else DONE


def _in_words(error: click.ClickException, words: Sequence[str]) -> str:
    """Return what click found wrong, and where to read on."""
    said = error.format_message()
    if not isinstance(error, click.UsageError):
        return said
    # Its parser names no command.
    verb = words[0] if words and words[0] in VERBS else ""
    path = error.ctx.command_path if error.ctx else f"hotlap {verb}".strip()
    return f"{said} See `{path} --help`."


def _refuse_windows() -> None:
    """Raise NotMeasurable on Windows, where a run cannot be measured."""
    if os.name == "nt":
        raise NotMeasurable("this is Windows; hotlap runs on Linux and macOS, so use it inside WSL")


def _reader_left() -> bool:
    """Return whether the reader of our output left early (``hotlap report RUN | head``)."""
    output = sys.stdout.fileno()
    watcher = select.poll()
    watcher.register(output, 0)
    if not any(events & select.POLLERR for _, events in watcher.poll(0)):
        return False
    _write_nowhere()
    return True


def _no_room_for_output(error: Exception) -> str | None:
    """Return in words why stdout took no output (closed, full disk), None when it is not that."""
    if sys.stdout is None:
        return "it is closed"
    # A file that was opened by name is not stdout.
    if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
        _write_nowhere()
        return error.strerror
    return None


def _write_nowhere() -> None:
    """Give stdout somewhere to write: the interpreter flushes it once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
