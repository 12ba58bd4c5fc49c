"""Trials: what they write stays in them, and nothing of them is left, however they end."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from hotlap.errors import WrongUse
from hotlap.launch.trial import Ended, Job, NotContained, run_trial

SCRIPT = Path(__file__).with_name("contained_script.py")
LIMIT_S = 60.0


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Return a folder with a start directory, a home and a place for the record."""
    out = tmp_path / "start" / "out"
    (out / "old").mkdir(parents=True)
    (out / "old" / "weights.bin").write_bytes(b"o" * 3000)
    for name in ("log", "last", "gone", "kept"):
        (out / f"{name}.txt").write_text(f"{name} 1\n")
    (out / "best.bin").write_bytes(b"b" * 2000)
    (tmp_path / "home").mkdir()
    (tmp_path / "start" / "record").mkdir()
    return tmp_path


def tree(folder: Path) -> str:
    """Return a hash over names, modes, times and contents below a folder, the record left out."""
    parts = []
    for path in sorted(folder.rglob("*")):
        if "record" in path.parts:
            continue
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        changed = status.st_mtime_ns if path.is_file() else 0
        parts.append(f"{path} {status.st_mode} {changed} {content}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def job(house: Path, words: list[str], **changes: object) -> Job:
    """Return a trial of a command in the house."""
    environ = {**os.environ, "HOME": str(house / "home")}
    start = house / "start"
    record = start / "record"
    values = {"contain": "overlay", "limit_s": LIMIT_S, **changes}
    return Job(words, environ, start, record / "output.txt", (record,), **values)  # type: ignore[arg-type]  # two fields of two types


def contained(house: Path, words: list[str], **changes: object) -> Ended:
    """Run a contained trial; skip where the system does not allow one."""
    try:
        return run_trial(job(house, words, **changes))
    except NotContained as error:
        pytest.skip(f"this machine contains nothing: {error}")


def leftovers() -> list[str]:
    """Return mounts and scratch folders of trials that can be seen from here."""
    mounts = Path("/proc/self/mountinfo").read_text()
    found = [line for line in mounts.splitlines() if "hotlap-trial" in line]
    for place in ("/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~")):
        found += [str(one) for one in Path(place).glob(f".hotlap-trial-{os.getpid()}-*")]
    return found


def test_folders_are_the_same_after_a_trial_that_rewrites_them(house: Path) -> None:
    before = tree(house)
    in_tmp = Path("/tmp") / f"hotlap-test-{house.name}-{os.getpid()}.txt"
    record = house / "start" / "record"
    ended = contained(house, [sys.executable, str(SCRIPT), str(in_tmp), str(record)])
    assert (ended.exit_code, ended.by) == (0, "itself"), (record / "output.txt").read_text()
    assert tree(house) == before
    assert not in_tmp.exists()
    seen = json.loads((record / "seen.json").read_text())
    assert seen == {"resumed_from": "last 1\n", "cwd": str(house / "start"), "uid": os.getuid()}
    printed = (record / "output.txt").read_text()
    left = json.loads(printed.removeprefix("done "))
    assert left == ["best.bin", "kept.txt", "last.txt", "log.txt", "new"]
    assert not list((house / "start").glob(".hotlap-*"))
    assert not leftovers()


def test_every_trial_begins_from_the_same_files(house: Path) -> None:
    words = [sys.executable, str(SCRIPT), str(house / "t.txt"), str(house / "start" / "record")]
    codes = [contained(house, words).exit_code for _ in range(2)]
    assert codes == [0, 0]


def test_without_containment_it_writes_where_it_likes(house: Path) -> None:
    words = [sys.executable, str(SCRIPT), str(house / "t.txt"), str(house / "start" / "record")]
    ended = run_trial(job(house, words, contain="open"))
    assert ended.exit_code == 0
    assert not (house / "start" / "out" / "old").exists()
    assert ended.copies == ()


def test_exit_codes_and_signals_come_through(house: Path) -> None:
    assert contained(house, ["/bin/sh", "-c", "exit 7"]).exit_code == 7
    assert contained(house, ["/bin/sh", "-c", "kill -USR1 $$"]).exit_code == -signal.SIGUSR1


def test_input_is_empty_and_output_goes_to_the_file(house: Path) -> None:
    contained(house, ["/bin/sh", "-c", "cat; echo said; echo warned >&2"])
    assert (house / "start" / "record" / "output.txt").read_text() == "said\nwarned\n"


def test_a_trial_beyond_its_limit_is_stopped_as_a_user_would(house: Path) -> None:
    says = "import signal, sys, time\n"
    says += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\ntime.sleep(600)"
    ended = contained(house, [sys.executable, "-c", says], limit_s=1.5)
    assert (ended.exit_code, ended.by) == (9, "limit")


def test_what_a_command_leaves_running_ends_with_it(house: Path) -> None:
    mark = f"hotlap{os.getpid()}x{time.monotonic_ns()}"
    contained(house, ["/bin/sh", "-c", f"setsid sh -c 'sleep 600 # {mark}' & sleep 0.1"])
    assert not _running(mark)


def test_a_command_that_is_not_there_is_wrong_use(house: Path) -> None:
    with pytest.raises(WrongUse):
        run_trial(job(house, ["/no/such/program"]))


@pytest.mark.parametrize("contain", ["overlay", "open"])
def test_nothing_is_left_when_hotlap_is_killed(house: Path, contain: str) -> None:
    contained(house, ["/bin/true"])
    before = tree(house)
    mark = f"hotlap{os.getpid()}x{time.monotonic_ns()}"
    shell = f"echo x > out/x.txt; setsid sh -c 'sleep 600 # {mark}' & echo up; sleep 600 # {mark}"
    program = textwrap.dedent(
        f"""
        import os
        from pathlib import Path
        from hotlap.launch.trial import Job, run_trial
        start = Path({str(house / "start")!r})
        record = start / "record"
        environ = dict(os.environ, HOME={str(house / "home")!r})
        run_trial(Job(["/bin/sh", "-c", {shell!r}], environ, start, record / "output.txt",
                      (record,), {contain!r}))
        """
    )
    ours = subprocess.Popen([sys.executable, "-c", program])
    output = house / "start" / "record" / "output.txt"
    _until(lambda: output.exists() and "up" in output.read_text())
    _until(lambda: len(_running(mark)) >= 2)
    ours.kill()
    ours.wait()
    _until(lambda: not _running(mark))
    assert not [one for one in Path("/proc").glob("[0-9]*/mountinfo") if _holds(one, house)]
    _until(lambda: not list((house / "start").glob(".hotlap-trial-*")))
    assert (tree(house) == before) is (contain == "overlay")


def _running(mark: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if mark.encode() in words and int(path.parent.name) != os.getpid():
            found.append(int(path.parent.name))
    return found


def _holds(mountinfo: Path, house: Path) -> bool:
    try:
        text = mountinfo.read_text()
    except OSError:
        return False
    return str(house) in text


def _until(holds: object, limit_s: float = 30.0) -> None:
    assert callable(holds)
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)
