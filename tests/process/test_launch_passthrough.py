"""What a command is given, says and ends with is the same with us as without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from process.launch_stage import BARE, HERE, PATIENCE_S, THROUGH_US, at_terminal, child

EVERY_BYTE = bytes(range(256)) * 500


def run(how: tuple[str, ...], *command: str, **more: object) -> tuple[int, bytes, bytes]:
    done = subprocess.run(  # type: ignore[call-overload]
        [*how, *command], capture_output=True, timeout=PATIENCE_S, **more
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("code", [0, 1, 3, 126, 127, 128, 137, 255])
def test_exit_code(code: int) -> None:
    for how in (BARE, THROUGH_US):
        assert run(how, "sh", "-c", f"exit {code}") == (code, b"", b"")


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "ABRT", "INT", "QUIT", "HUP", "PIPE"])
def test_killed_by_a_signal(name: str, tmp_path: Path) -> None:
    number = getattr(signal, f"SIG{name}")
    for how in (BARE, THROUGH_US):
        ended = run(how, "sh", "-c", f"ulimit -c 0; kill -{name} $$", cwd=tmp_path)
        assert ended == (-number, b"", b"")
    assert not list(tmp_path.iterdir())  # no core of ours


def test_no_core_of_ours_where_cores_are_wanted(tmp_path: Path) -> None:
    """The command forbids its own core; we are asked to leave the same way."""
    wanted = "ulimit -c unlimited 2>/dev/null; " + " ".join(THROUGH_US)
    run(BARE, "sh", "-c", f"{wanted} sh -c 'ulimit -c 0; kill -SEGV $$'", cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_output_is_unchanged_byte_for_byte() -> None:
    script = "import sys; b = sys.stdin.buffer.read(); sys.stdout.buffer.write(b); "
    script += "sys.stderr.buffer.write(b[::-1]); sys.exit(9)"
    for how in (BARE, THROUGH_US):
        ended = run(how, sys.executable, "-c", script, input=EVERY_BYTE)
        assert ended == (9, EVERY_BYTE, EVERY_BYTE[::-1])


def test_what_the_command_does_not_read_is_left_for_the_next() -> None:
    for how in (BARE, THROUGH_US):
        first = " ".join([*how, "dd", "bs=1", "count=3", "status=none"])
        _, out, _ = run((), "sh", "-c", f"{first}; echo -; cat", input=b"abcdef")
        assert out == b"abc-\ndef"


def test_a_reader_that_goes_away() -> None:
    """The command gets SIGPIPE, which Python ignores in us."""
    script = 'PATH=$PATH; { "$@"; echo $? >&2; } | head -c 1'
    for how in (BARE, THROUGH_US):
        _, _, err = run((), "sh", "-c", script, "sh", *how, "sh", "-c", "while echo y; do :; done")
        assert err.strip().endswith(b"141")


def test_standard_streams_on_a_terminal() -> None:
    heard = []
    for how in (BARE, THROUGH_US):
        with at_terminal([*how, *child("terminal")]) as terminal:
            heard.append(terminal.rest())
            assert terminal.end() == 0
    assert heard[0] == heard[1]
    assert heard[0].count("True") == 4


SURROUNDINGS = {
    "plain": "",
    "nohup": "trap '' HUP;",
    "background of a script": "trap '' INT QUIT;",
    "children ignored": "trap '' CHLD;",
    "stops ignored": "trap '' TSTP TTIN TTOU;",
    "limits": "ulimit -n 100; ulimit -c 0; umask 077;",
    "descriptors": "exec 3</dev/null 7>/dev/null;",
    "C locale": "unset LANG LC_ALL LC_CTYPE; export LC_COLLATE=C;",
    "priority": "renice -n 5 -p $$ >/dev/null;",
    "elsewhere": "cd /; unset PYTHONPATH; export A='x\ny=z';",
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_surroundings(name: str) -> None:
    """Dispositions, mask, descriptors, limits, folder, environment, group and session."""
    look = (
        "grep -E '^(Sig[BI]|ShdPnd|NoNewPrivs|Cpus_allowed|Umask)' /proc/self/status; env | sort; "
        "ls /proc/$$/fd; ulimit -a; pwd; nice; cut -d' ' -f5,6 /proc/$$/stat; echo $0"
    )
    seen = []
    for how in (BARE, THROUGH_US):
        # `exec` in the shell, so that it is the shell's own process that we are compared with.
        script = f'{SURROUNDINGS[name]} exec "$@"'
        command = ("sh", "-c", script, "sh", *how, "sh", "-c", look)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        said = process.communicate(timeout=PATIENCE_S)[0].decode()
        seen.append(_without_the_libc(said.replace(str(process.pid), "LEADER")))
        assert process.returncode == 0
    assert seen[0] == seen[1]


def _without_the_libc(said: str) -> list[str]:
    """Signals 32 and 33 belong to the C library, which ignores them in what it spawns until it
    needs them itself; a shell's variable `_` names the program that it ran."""
    lines = []
    for line in said.splitlines():
        if line.startswith("SigIgn:"):
            mask = int(line.split()[1], 16) & ~(3 << 31)
            line = f"SigIgn: {mask:016x}"
        if not line.startswith("_="):
            lines.append(line)
    return lines


def test_sigpipe_ignored_by_the_caller_is_the_known_limit() -> None:
    """Python forgets at its start whether SIGPIPE was ignored; docs/launch.md says so."""
    script = "trap '' PIPE; exec \"$@\""
    look = ("sh", "-c", "grep SigIgn /proc/self/status")
    _, bare, _ = run((), "sh", "-c", script, "sh", *look)
    _, ours, _ = run((), "sh", "-c", script, "sh", *THROUGH_US, *look)
    bit = 1 << (signal.SIGPIPE - 1)
    assert int(bare.split()[1], 16) & bit
    assert not int(ours.split()[1], 16) & bit


def test_script_without_a_first_line(tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text('echo "$1"; exit 3\n')
    script.chmod(0o755)
    bare = run((), "bash", "-c", '"$@"', "bash", str(script), "x")
    assert bare == run(THROUGH_US, str(script), "x") == (3, b"x\n", b"")


@pytest.mark.parametrize(
    ("text", "says"), [("#!/no/such\n", b"interpreter"), (None, b"no such file")]
)
def test_what_cannot_be_started_is_2(tmp_path: Path, text: str | None, says: bytes) -> None:
    script = tmp_path / "train"
    if text is not None:
        script.write_text(text)
        script.chmod(0o755)
    code, out, err = run(THROUGH_US, str(script))
    assert (code, out) == (2, b"")
    assert says in err


def test_a_missing_script_is_pythons_own_affair(tmp_path: Path) -> None:
    command = (sys.executable, str(tmp_path / "train.py"))
    assert run(BARE, *command) == run(THROUGH_US, *command)


def test_poll_that_fails_disturbs_nothing_and_is_remembered(tmp_path: Path) -> None:
    script = tmp_path / "poll.py"
    script.write_text(
        "import os, sys, time\n"
        "from hotlap.launch.child import run_child\n"
        "r, w = os.pipe(); os.set_inheritable(r, True)\n"
        "polls = []\n"
        "def poll():\n"
        "    polls.append(1)\n"
        "    if len(polls) == 3: os.write(w, b'x')\n"
        "    raise ValueError(len(polls))\n"
        "begin = time.monotonic_ns()\n"
        "o = run_child(['sh', '-c', f'dd bs=1 count=1 status=none <&{r}; exit 3'], os.environ,\n"
        "              '/', on_poll=poll, poll_s=0.01)\n"
        "assert begin <= o.spawn_ns < o.exit_ns <= time.monotonic_ns()\n"
        "print(o.exit_code, len(polls) >= 3, o.poll_fault)\n"
    )
    assert run((), sys.executable, str(script)) == (0, b"x3 True ValueError: 1\n", b"")


def test_other_folder(tmp_path: Path) -> None:
    script = (
        "import os, sys; from hotlap.launch.child import run_child; before = os.getcwd()\n"
        f"run_child(['pwd'], os.environ, {str(tmp_path)!r}); assert os.getcwd() == before\n"
        "from hotlap.errors import WrongUse\n"
        "try: run_child(['pwd'], os.environ, '/no/such')\n"
        "except WrongUse as error: print(error); assert os.getcwd() == before\n"
    )
    code, out, _ = run((), sys.executable, "-c", script, cwd=HERE)
    assert code == 0
    assert out.decode().splitlines() == [
        os.path.realpath(tmp_path),
        "Cannot start in '/no/such': no such folder.",
    ]
