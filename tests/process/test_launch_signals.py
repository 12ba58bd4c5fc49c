"""Signals reach a command with us as without: each once, whoever they were sent to."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from process.launch_stage import (
    BARE,
    THROUGH_ALL_OF_US,
    THROUGH_US,
    at_terminal,
    child,
    group,
    on_stage,
    state,
    wait_until,
)

WAYS = pytest.mark.parametrize(
    "how", [BARE, THROUGH_US, THROUGH_ALL_OF_US], ids=["bare", "ours", "cli"]
)


@pytest.fixture(autouse=True)
def _records_go_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "records").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "records"))


PASSED_ON = "HUP INT QUIT USR1 ALRM TERM CONT WINCH RTMIN".split()


def to_one(pid: int, number: int) -> None:
    """Signal the process that was started, as a supervisor does that knows nothing else."""
    os.kill(pid, number)


def to_group(pid: int, number: int) -> None:
    """Signal the whole group in one call, as a terminal and a shell do."""
    os.killpg(pid, number)


def to_each(pid: int, number: int) -> None:
    """Signal all processes one by one, as service managers and batch systems do."""
    for one in group(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, number)


@WAYS
@pytest.mark.parametrize("send", [to_one, to_group, to_each])
def test_each_signal_arrives_once(how: tuple[str, ...], send: object) -> None:
    with on_stage([*how, *child("log")]) as stage:
        stage.ready()
        for name in PASSED_ON * 2:
            send(stage.pid, getattr(signal, f"SIG{name}"))  # type: ignore[operator]
            assert stage.line() == f"SIG{name}"
        # Sent to one: it takes the same way as a second copy of the last one would have taken.
        os.kill(stage.pid, signal.SIGUSR2)
        assert stage.line() == ""
        assert stage.end() == 7


@WAYS
def test_one_and_group_in_turns(how: tuple[str, ...]) -> None:
    """What came to the group must not be taken for what comes to one later, nor the reverse."""
    with on_stage([*how, *child("log")]) as stage:
        stage.ready()
        for send in (to_one, to_group, to_one, to_one, to_group, to_group, to_one):
            send(stage.pid, signal.SIGTERM)
            assert stage.line() == "SIGTERM"
            # The same signal twice within the 20 ms in which we listen counts as one.
            os.kill(stage.pid, signal.SIGUSR1)
            assert stage.line() == "SIGUSR1"
        os.kill(stage.pid, signal.SIGUSR2)
        assert (stage.line(), stage.end()) == ("", 7)


@WAYS
def test_several_at_once(how: tuple[str, ...]) -> None:
    with on_stage([*how, *child("log")]) as stage:
        stage.ready()
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1):
            os.killpg(stage.pid, number)
        heard = sorted(stage.line() for _ in range(3))
        assert heard == ["SIGHUP", "SIGTERM", "SIGUSR1"]
        os.kill(stage.pid, signal.SIGUSR2)
        assert (stage.line(), stage.end()) == ("", 7)


@WAYS
def test_queued_before_the_command_is_up(how: tuple[str, ...], tmp_path: Path) -> None:
    """A signal that waits for us from before we began is the command's."""
    script = tmp_path / "before.py"
    script.write_text(
        "import os, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "os.execvp(sys.argv[1], sys.argv[1:])\n"
    )
    with on_stage([child()[0], str(script), *how, *child("await_usr1")]) as stage:
        assert stage.end() == 8


@WAYS
@pytest.mark.parametrize("name", ["TERM", "HUP", "INT", "USR1", "ALRM", "QUIT"])
def test_ended_by_a_signal_sent_to_one(how: tuple[str, ...], name: str) -> None:
    number = getattr(signal, f"SIG{name}")
    with on_stage([*how, "sh", "-c", "ulimit -c 0; echo ready $$; exec sleep 600"]) as stage:
        pid = stage.ready()
        os.kill(stage.pid, number)
        assert stage.end() == -number
        wait_until(lambda: state(pid) in ("", "Z"))


@WAYS
def test_clean_up_after_an_interrupt_is_waited_for(how: tuple[str, ...]) -> None:
    with on_stage([*how, *child("tidy")]) as stage:
        assert stage.line() == "ready"
        os.killpg(stage.pid, signal.SIGINT)
        assert [stage.line(), stage.line(), stage.end()] == ["tidying", "tidied", 5]


@WAYS
def test_second_interrupt_arrives_in_the_clean_up(how: tuple[str, ...]) -> None:
    with on_stage([*how, *child("tidy", "slowly")]) as stage:
        assert stage.line() == "ready"
        os.killpg(stage.pid, signal.SIGINT)
        assert stage.line() == "tidying"
        os.killpg(stage.pid, signal.SIGINT)
        assert [stage.line(), stage.end()] == ["again", 6]


@WAYS
def test_nothing_is_left_but_the_users_own(how: tuple[str, ...]) -> None:
    script = "sleep 600 </dev/null >/dev/null & echo ready $!; exit 3"
    with on_stage([*how, "sh", "-c", script]) as stage:
        background = stage.ready()
        assert stage.end() == 3
        assert group(stage.pid) == [background]


@WAYS
def test_killed_means_the_command_and_nothing_is_left(how: tuple[str, ...]) -> None:
    """SIGKILL to the process that holds the command's place ends the command."""
    with on_stage([*how, *child("log")]) as stage:
        stage.ready()
        os.kill(stage.pid, signal.SIGUSR1)
        assert stage.line() == "SIGUSR1"
        os.kill(stage.pid, signal.SIGKILL)
        assert stage.end() == -signal.SIGKILL
        wait_until(lambda: not group(stage.pid))


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "BUS"])
def test_our_own_crash_is_not_the_commands(name: str) -> None:
    with on_stage([*THROUGH_US, *child("log")], stderr=subprocess.DEVNULL) as stage:
        pid = stage.ready()
        os.kill(stage.pid, signal.SIGUSR1)
        assert stage.line() == "SIGUSR1"
        number = getattr(signal, f"SIG{name}")
        os.kill(stage.pid, number)
        assert stage.end() == -number
        wait_until(lambda: group(stage.pid) == [pid])
        os.kill(pid, signal.SIGTERM)
        assert stage.line() == "SIGTERM"


def test_without_the_witness_a_terminals_signals_are_not_doubled() -> None:
    """It can be killed like any process: then the usual is assumed of each signal."""
    with on_stage([*THROUGH_US, *child("log")]) as stage:
        pid = stage.ready()
        (witness,) = set(group(stage.pid)) - {stage.pid, pid}
        os.kill(witness, signal.SIGKILL)
        wait_until(lambda: state(witness) in ("", "Z"))
        os.killpg(stage.pid, signal.SIGINT)
        assert stage.line() == "SIGINT"
        os.kill(stage.pid, signal.SIGTERM)
        assert stage.line() == "SIGTERM"
        os.kill(stage.pid, signal.SIGUSR2)
        assert (stage.line(), stage.end()) == ("", 7)


@WAYS
def test_ignored_hangup_stays_ignored(how: tuple[str, ...]) -> None:
    """As under nohup: neither the sleeper nor we mind."""
    with on_stage(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *how, *child("sleep")]) as stage:
        stage.ready()
        os.kill(stage.pid, signal.SIGHUP)
        os.killpg(stage.pid, signal.SIGHUP)
        os.kill(stage.pid, signal.SIGTERM)
        assert stage.end() == -signal.SIGTERM


@WAYS
def test_ignored_hangup_reaches_a_command_that_asks_for_it(how: tuple[str, ...]) -> None:
    with on_stage(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *how, *child("log")]) as stage:
        stage.ready()
        os.kill(stage.pid, signal.SIGHUP)
        assert stage.line() == "SIGHUP"
        os.kill(stage.pid, signal.SIGUSR2)
        assert (stage.line(), stage.end()) == ("", 7)


@WAYS
def test_alarm_set_before_us_is_the_commands(how: tuple[str, ...], tmp_path: Path) -> None:
    """The classic time limit: an alarm clock survives exec."""
    script = tmp_path / "limit.py"
    script.write_text(
        "import os, signal, sys\n"
        "signal.setitimer(signal.ITIMER_REAL, 1.5)\n"
        "os.execvp(sys.argv[1], sys.argv[1:])\n"
    )
    with on_stage([child()[0], str(script), *how, *child("sleep")]) as stage:
        assert stage.end() == -signal.SIGALRM


@WAYS
@pytest.mark.parametrize("leader", ["itself", "bash"])
def test_terminal_that_goes_away(how: tuple[str, ...], leader: str, tmp_path: Path) -> None:
    """The hangup comes once: to a leader of the session from the kernel, else from the shell."""
    said = tmp_path / "said"
    command = [*how, *child("log", str(said))]
    started = command if leader == "itself" else ["bash", "-c", '"$@"; exit', "bash", *command]
    with at_terminal(started) as terminal:
        wait_until(lambda: said.exists() and said.read_text().startswith("ready"))
        (pid,) = re.findall(r"ready (\d+)", said.read_text())
        terminal.hang_up()
        wait_until(lambda: "SIGHUP" in said.read_text())
        ours = terminal.process.pid if leader == "itself" else _parent_in_our_place(int(pid), how)
        os.kill(ours, signal.SIGUSR1)
        wait_until(lambda: "SIGUSR1" in said.read_text())
        os.kill(int(pid), signal.SIGUSR2)
        assert said.read_text().count("SIGHUP") == 1


def _parent_in_our_place(pid: int, how: tuple[str, ...]) -> int:
    """Return the process that a shell sees in the command's place."""
    if how == BARE:
        return pid
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
