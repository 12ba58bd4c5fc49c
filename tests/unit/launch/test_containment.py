"""The pure parts of containment: reading the list of mounts, and what lies below what."""

from __future__ import annotations

from pathlib import Path

from hotlap.launch.containment import Containment, leaks, within
from hotlap.launch.kernel_mounts import READ_ONLY, mounts
from hotlap.launch.trackers import fresh_rendezvous, offline

LINES = r"""
22 1 252:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 0:25 / /home/a\040b rw,nosuid,nodev,noatime - nfs4 server:/x rw,vers=4.2
31 22 0:26 / /snap/x ro,relatime - squashfs /dev/loop0 ro
32 22 0:27 / /home/a\040b ro,nosuid - tmpfs none rw
broken line
"""


def test_mounts_are_read_by_path_the_last_one_counts() -> None:
    found = {one.path: one for one in mounts(LINES)}
    assert list(found) == ["/", "/home/a b", "/snap/x"]
    assert found["/"].kind == "ext4"
    assert found["/"].is_writable
    assert found["/home/a b"].kind == "tmpfs"
    assert not found["/home/a b"].is_writable
    assert not found["/snap/x"].is_writable


def test_a_remount_repeats_the_flags_that_are_there() -> None:
    first = mounts("1 0 0:1 / /x rw,nosuid,nodev,noexec,relatime - ext4 d rw")[0]
    assert first.flags == 2 | 4 | 8 | (1 << 21)
    assert mounts("1 0 0:1 / /x ro - ext4 d rw")[0].flags == READ_ONLY


def test_within_is_about_whole_names() -> None:
    assert within("/a/b", "/a")
    assert within("/a", "/a")
    assert not within("/ab", "/a")
    assert within("/ab", "/")


def test_a_probe_that_is_seen_outside_is_a_leak(tmp_path: Path) -> None:
    (tmp_path / "seen").touch()
    done = Containment(probes=[str(tmp_path / "seen"), str(tmp_path / "unseen")])
    assert leaks(done) == [str(tmp_path / "seen")]


def test_trackers_are_offline_and_what_is_off_stays_off(tmp_path: Path) -> None:
    wished = offline({}, tmp_path)
    assert wished["WANDB_MODE"] == "offline"
    assert wished["MLFLOW_TRACKING_URI"].startswith("file://")
    assert not any(name.startswith(("HF_", "TRANSFORMERS_")) for name in wished)
    assert "WANDB_MODE" not in offline({"WANDB_MODE": "disabled"}, tmp_path)


def test_a_port_that_the_user_chose_stays() -> None:
    assert fresh_rendezvous({"PET_MASTER_PORT": "1"}) == {}
    port = int(fresh_rendezvous({})["PET_MASTER_PORT"])
    assert 1024 <= port < 65536
