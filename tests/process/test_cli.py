"""The command line as a shell sees it: exit codes, one line per error, completion, pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from hotlap import __version__, cli
from hotlap.errors import NotMeasurable, UnreadableRun

HOTLAP = [sys.executable, "-m", "hotlap"]


def shell(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run hotlap as its own process."""
    return subprocess.run(
        [*HOTLAP, *words],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


def test_help_lists_every_verb_with_its_line(tmp_path: Path) -> None:
    done = shell("--help", cwd=tmp_path)
    assert done.returncode == 0
    for name, verb in cli.VERBS.items():
        assert name in done.stdout
        assert verb.says.split()[0] in done.stdout


def test_version(tmp_path: Path) -> None:
    assert shell("--version", cwd=tmp_path).stdout == f"hotlap, version {__version__}\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("train.py", "--lr", "1"), "to measure it: hotlap run train.py"),
        (("rnus",), "'rnus' is no verb of hotlap; did you mean run"),
        (("torchrun", "train.py"), "to measure a command: hotlap run torchrun"),
        (("runs", "lst"), "Did you mean 'list'? See `hotlap runs --help`."),
        (("report", "--json"), "requires an argument. See `hotlap report --help`."),
        (("diagnose",), "for example `hotlap diagnose train.py --epochs 3`"),
        (("diagnose", "nowhere.py"), "nowhere.py: there is no such file"),
        (("diagnose", sys.executable, "nowhere.py"), "nowhere.py: there is no such file"),
        (("runs", "prune", "--keep-size", "many"), "'many' is no size"),
        (("runs", "prune", "--keep-runs", "0"), "0 is not in the range x>=1"),
        (("--fast",), "No such option"),
    ],
)
def test_wrong_use_is_2_and_says_what_to_do(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    done = shell(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.startswith("hotlap: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (tmp_path / ".hotlap").exists()


def test_completion_names_the_verbs(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "hotlap")],
        cwd=tmp_path,
        env={
            **os.environ,
            "_HOTLAP_COMPLETE": "bash_complete",
            "COMP_WORDS": "hotlap ru",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines() == ["plain,run", "plain,runs"]


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*HOTLAP, "--help"],
            cwd=tmp_path,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def raising(error: BaseException) -> Callable[[click.Context, str], click.Command]:
    """Return a look-up of verbs whose every verb raises."""

    @click.command()
    def verb() -> None:
        raise error

    return lambda _context, _name: verb


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (NotMeasurable("no trainer appeared"), 3, "hotlap: no trainer appeared\n"),
        (UnreadableRun("run x is damaged"), 3, "hotlap: run x is damaged\n"),
        (KeyboardInterrupt(), 130, ""),
        (ZeroDivisionError("0"), 70, "hotlap: this is a fault of hotlap itself, shown above\n"),
    ],
)
def test_main_alone_turns_errors_into_text(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    says: str,
) -> None:
    monkeypatch.setattr(cli.hotlap, "get_command", raising(error))
    assert cli.main(["doctor"]) == code
    assert capsys.readouterr().err.endswith(says)


def test_the_exit_code_of_a_verb_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def verb() -> int:
        return 17

    monkeypatch.setattr(cli.hotlap, "get_command", lambda _context, _name: verb)
    assert cli.main(["doctor"]) == 17
