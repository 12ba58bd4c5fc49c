"""Keys and job control at a real terminal, in a real shell: the same with us as without."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from process.launch_stage import (
    BARE,
    THROUGH_ALL_OF_US,
    THROUGH_US,
    Terminal,
    at_terminal,
    child,
    shell,
)

WAYS = pytest.mark.parametrize(
    "how", [BARE, THROUGH_US, THROUGH_ALL_OF_US], ids=["bare", "ours", "cli"]
)


@pytest.fixture(autouse=True)
def _records_go_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "records").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "records"))


PROMPT = r"\$ "
INTERRUPT, STOP, QUIT = "\x03", "\x1a", "\x1c"


def typed(how: tuple[str, ...], *words: str) -> str:
    """Return the command as a user types it."""
    return shlex.join([*how, *child(*words)])


def enter(terminal: Terminal, line: str) -> None:
    """Type a line at the shell's prompt, once it is there.

    Keys that come while the shell takes the terminal back from a job can get lost.
    """
    terminal.expect(PROMPT)
    terminal.press(line + "\n")


def status(terminal: Terminal) -> int:
    """Return `$?`."""
    enter(terminal, "echo status=$?")
    return int(terminal.expect(r"status=(\d+)")[1])


@WAYS
def test_interrupt_that_kills(how: tuple[str, ...]) -> None:
    with at_terminal(shell()) as terminal:
        enter(terminal, typed(how, "sleep"))
        terminal.expect("ready")
        terminal.press(INTERRUPT)
        assert status(terminal) == 130


@WAYS
def test_quit_that_kills(how: tuple[str, ...]) -> None:
    with at_terminal(shell()) as terminal:
        enter(terminal, "ulimit -c 0; " + typed(how, "sleep"))
        terminal.expect("ready")
        terminal.press(QUIT)
        terminal.expect("Quit")
        assert status(terminal) == 131


@WAYS
def test_interrupt_that_is_tidied_up_after(how: tuple[str, ...]) -> None:
    with at_terminal(shell()) as terminal:
        enter(terminal, typed(how, "tidy"))
        terminal.expect("ready")
        terminal.press(INTERRUPT)
        terminal.expect("tidying")
        terminal.expect("tidied")
        assert status(terminal) == 5


@WAYS
def test_interrupt_twice(how: tuple[str, ...]) -> None:
    with at_terminal(shell()) as terminal:
        enter(terminal, typed(how, "tidy", "slowly"))
        terminal.expect("ready")
        terminal.press(INTERRUPT)
        terminal.expect("tidying")
        terminal.press(INTERRUPT)
        terminal.expect("again")
        assert status(terminal) == 6


@WAYS
@pytest.mark.parametrize(("what", "goes_on"), [("sleep", False), ("tidy", True)])
def test_script_breaks_off_after_a_death_by_interrupt_only(
    how: tuple[str, ...], what: str, goes_on: bool
) -> None:
    """A shell goes on with its script when the command took the interrupt as an ordinary key."""
    script = typed(how, what) + "; echo the script went on"
    with at_terminal(["bash", "-c", script]) as terminal:
        terminal.expect("ready")
        terminal.press(INTERRUPT)
        assert ("the script went on" in terminal.rest()) == goes_on
        assert (terminal.end() == 0) == goes_on


@WAYS
@pytest.mark.parametrize("what", ["ask", "vim"])
def test_stop_and_foreground(how: tuple[str, ...], what: str) -> None:
    with at_terminal(shell()) as terminal:
        enter(terminal, typed(how, what))
        terminal.expect("ready")
        for _ in range(2):
            terminal.press(STOP)
            terminal.expect("Stopped")
            assert status(terminal) in (146, 147, 148)
            enter(terminal, "jobs")
            terminal.expect(r"\[1\]\+ +Stopped")
            enter(terminal, "fg")
            terminal.expect("continued")
        terminal.press("hello\n")
        terminal.expect("got hello")
        assert status(terminal) == 4


@WAYS
def test_status_of_a_stop(how: tuple[str, ...]) -> None:
    with at_terminal(shell()) as terminal:
        enter(terminal, typed(how, "sleep"))
        terminal.expect("ready")
        terminal.press(STOP)
        terminal.expect("Stopped")
        assert status(terminal) == 148
        enter(terminal, "kill %1; while kill -0 %1 2>/dev/null; do :; done; echo")
        terminal.expect("Terminated")


@WAYS
def test_stop_that_is_ignored(how: tuple[str, ...]) -> None:
    with at_terminal(shell()) as terminal:
        enter(terminal, "trap '' TSTP; " + typed(how, "ask"))
        terminal.expect("ready")
        terminal.press(STOP)
        terminal.press("hello\n")
        terminal.expect("got hello")
        assert status(terminal) == 4


@WAYS
def test_background_and_signals_by_job_number(how: tuple[str, ...]) -> None:
    with at_terminal(shell()) as terminal:
        enter(terminal, typed(how, "log"))
        terminal.expect("ready")
        terminal.press("\x1a")  # the log takes it as a signal like any other: no stop
        terminal.expect("SIGTSTP")
        terminal.press(INTERRUPT)
        terminal.expect("SIGINT")
        terminal.press(QUIT)
        terminal.expect("SIGQUIT")
    with at_terminal(shell()) as terminal:
        enter(terminal, typed(how, "log") + " &")
        terminal.expect("ready")
        terminal.press("kill -TERM %1\n")
        terminal.expect("SIGTERM")
        terminal.press("kill -STOP %1; until jobs | grep -q Stopped; do :; done; echo it\\ has\n")
        terminal.expect("it has")
        enter(terminal, "bg")
        terminal.expect("SIGCONT")
        terminal.press("kill -USR1 %1\n")
        terminal.expect("SIGUSR1")
        terminal.press("kill -USR2 %1; wait %1; echo status=$?\n")
        assert terminal.expect(r"status=(\d+)")[1] == b"7"
        assert b"SIG" not in terminal.heard


@WAYS
def test_background_job_that_reads_the_terminal_stops(how: tuple[str, ...]) -> None:
    with at_terminal(shell()) as terminal:
        enter(terminal, typed(how, "ask") + " &")
        terminal.expect("ready")
        # The shell tells at its next prompt once the job has stopped, whenever that is.
        terminal.press("until jobs | grep -q Stopped; do :; done; echo it has\\ stopped\n")
        terminal.expect("it has stopped")
        enter(terminal, "fg")
        terminal.expect("continued")
        terminal.press("hello\n")
        terminal.expect("got hello")
        assert status(terminal) == 4


@WAYS
def test_terminal_is_given_back_as_it_was(how: tuple[str, ...]) -> None:
    """The next command reads what the first did not."""
    with at_terminal(shell()) as terminal:
        enter(terminal, typed(how, "ask"))
        terminal.expect("ready")
        terminal.press("one\n")
        terminal.expect("got one")
        enter(terminal, "stty -a | grep -c -- ' icanon'; read line; echo status=$?$line")
        terminal.press("two\n")
        assert terminal.expect(r"status=(\w+)")[1] == b"0two"
