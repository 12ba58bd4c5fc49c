"""Trials where nothing can be mounted: copies of the user's folders, and no writing elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotlap.launch.copies import copies
from hotlap.launch.trial import Ended, Job, NotContained, run_trial, way_here
from process.test_trial_containment import LIMIT_S, SCRIPT, house, tree

__all__ = ["house"]


def in_copies(house: Path, words: list[str]) -> tuple[Ended, str]:
    """Run a command in copies of the house; return how it ended and what it printed."""
    start, record = house / "start", house / "start" / "record"
    output = record / "output.txt"
    environ = {**os.environ, "HOME": str(house / "home")}
    try:
        with copies(words, environ, start) as made:
            job = Job(
                made.argv,
                made.environ,
                made.start,
                output,
                (record,),
                "copies",
                LIMIT_S,
                (made.root,),
            )
            ended = run_trial(job)
    except NotContained as error:
        pytest.skip(f"this machine forbids nothing: {error}")
    assert not made.root.exists()
    return ended, output.read_text()


def test_folders_are_the_same_after_a_trial_that_rewrites_them(house: Path) -> None:
    before = tree(house)
    words = [sys.executable, str(SCRIPT), str(house / "home" / "t"), str(house / "start/record")]
    ended, said = in_copies(house, words)
    assert (ended.exit_code, ended.by) == (0, "itself"), said
    assert tree(house) == before
    assert '"best.bin", "kept.txt", "last.txt", "log.txt", "new"' in said


def test_no_other_place_can_be_written(house: Path) -> None:
    elsewhere = house / "elsewhere.txt"
    elsewhere.write_text("as it was")
    says = f"from pathlib import Path\nPath({str(elsewhere)!r}).write_text('changed')"
    ended, said = in_copies(house, [sys.executable, "-c", says])
    assert ended.exit_code == 1
    assert "PermissionError" in said
    assert elsewhere.read_text() == "as it was"


def test_large_files_and_folders_of_data_are_read_in_place_and_cannot_be_changed(
    house: Path,
) -> None:
    data = house / "start" / "data"
    data.mkdir()
    for number in range(250):
        (data / f"{number}.bin").write_bytes(bytes([number]))
    before = tree(house)
    says = (
        "import os\nassert os.path.islink('data/7.bin')\n"
        "assert open('data/7.bin', 'rb').read() == bytes([7])\n"
        "try:\n    open('data/7.bin', 'wb')\nexcept PermissionError:\n    print('refused')\n"
        "os.replace('out/last.txt', 'data/7.bin')\nprint(open('data/7.bin').read())\n"
    )
    ended, said = in_copies(house, [sys.executable, "-c", says])
    assert (ended.exit_code, said) == (0, "refused\nlast 1\n\n")
    assert tree(house) == before


def test_the_way_up_and_home_lead_where_they_did(house: Path) -> None:
    (house / "beside").mkdir()
    (house / "beside" / "data.txt").write_text("beside")
    (house / "home" / ".cache").mkdir()
    says = (
        "from pathlib import Path\nimport tempfile\n"
        "print(Path('../beside/data.txt').read_text())\n"
        "(Path.home() / '.cache' / 'new').write_text('x')\n"
        "print(tempfile.NamedTemporaryFile().name.startswith(tempfile.gettempdir()))\n"
    )
    before = tree(house)
    ended, said = in_copies(house, [sys.executable, "-c", says])
    assert (ended.exit_code, said) == (0, "beside\nTrue\n")
    assert tree(house) == before


def test_a_child_of_the_command_is_bound_as_well(house: Path) -> None:
    before = tree(house)
    shell = f"sh -c 'rm -rf {house}/home; echo x > {house}/start/x; mkdir {house}/d' 2>/dev/null"
    in_copies(house, ["/bin/sh", "-c", f"{shell}; true"])
    assert tree(house) == before


def test_the_first_way_that_contains_is_taken(house: Path) -> None:
    try:
        way = way_here(house / "start", {**os.environ, "HOME": str(house / "home")})
    except NotContained as error:
        pytest.skip(str(error))
    assert way in ("overlay", "copies")


def test_without_mounts_copies_are_taken(house: Path) -> None:
    """In a user namespace of ours no mount namespace may be made: as in a locked-down container."""
    program = (
        "import os, sys, resource\n"
        "from pathlib import Path\n"
        "from hotlap.launch import kernel_mounts, trial\n"
        "limit = Path('/proc/sys/user/max_mnt_namespaces')\n"
        "kernel_mounts._unshare(0x10000000)\n"
        "limit.write_text('0')\n"
        f"start = Path({str(house / 'start')!r})\n"
        "print(trial.way_here(start, dict(os.environ)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    if "PermissionError" in done.stderr or "keeps" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout == "copies\n", done.stderr
