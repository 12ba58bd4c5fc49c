"""Pressure, network and disks: the counters that the kernel keeps."""

from __future__ import annotations

import pytest

from hotlap.machine import disks, network
from hotlap.machine.mounts import mount_of, parse_mountinfo
from hotlap.machine.pressure import Stall, parse_pressure, read_pressure
from unit.machine.machines import Tree

NET = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0
  eth0:     100       1    0    0    0     0          0         0       10       2    0    0
docker0:    100       1    0    0    0     0          0         0       10       2    0    0
"""
DISKSTATS = """\
   7       0 loop0 9 0 9 0 9 0 9 0 0 0 0
 259       0 nvme0n1 5 0 200 1 6 0 40 2 0 3 4
 259       1 nvme0n1p1 5 0 200 1 6 0 40 2 0 3 4
 253       0 dm-0 5 0 200 1 6 0 40 2 0 3 4
   8       0 sda 1 0 2 1 1 0 4 2 0 3 4
"""


def test_pressure() -> None:
    text = "some avg10=12.50 avg60=1.0 avg300=0 total=42\nfull avg10=0.00 avg60=0 total=7\n"
    assert parse_pressure(text) == {"some": Stall(0.125, 42_000), "full": Stall(0.0, 7_000)}
    assert parse_pressure("some nonsense\n\n") == {}


def test_pressure_that_is_off(tree: Tree) -> None:
    assert read_pressure(tree({"empty": ""})) is None
    cpu_only = tree({"proc/pressure/cpu": "some avg10=0.00 total=1\n"})
    assert read_pressure(cpu_only) == {"cpu_some": Stall(0.0, 1000)}


def test_bytes_of_real_interfaces_are_counted_once(tree: Tree) -> None:
    root = tree({"proc/net/dev": NET, "sys/class/net/eth0/device/x": ""})
    assert network.read_traffic(root) == network.Traffic(100, 10)
    assert network.read_interfaces(root) == {
        "eth0": network.Traffic(100, 10),
        "docker0": network.Traffic(100, 10),
    }


def test_a_container_sees_no_device_behind_its_interface(tree: Tree) -> None:
    lines = NET.splitlines(keepends=True)
    root = tree({"proc/net/dev": "".join(lines[:4])})
    assert network.read_traffic(root) == network.Traffic(100, 10)


def test_no_network(tree: Tree) -> None:
    assert network.read_traffic(tree({"empty": ""})) is None


def test_bytes_of_real_disks_are_counted_once(tree: Tree) -> None:
    root = tree(
        {
            "proc/diskstats": DISKSTATS,
            "sys/block/nvme0n1/device/x": "",
            "sys/block/sda/device/x": "",
            "sys/block/dm-0/size": "",
        }
    )
    found = disks.read_disks(root)
    assert found == {
        "nvme0n1": disks.Traffic(200 * 512, 40 * 512),
        "sda": disks.Traffic(2 * 512, 4 * 512),
    }
    assert disks.total(found) == disks.Traffic(202 * 512, 44 * 512)
    assert disks.total({}) is None
    assert disks.total(None) is None


MOUNTS = parse_mountinfo(
    "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "2 1 0:50 / /mnt/store rw - nfs4 server:/export rw\n"
    "3 1 0:51 / /mnt rw - tmpfs tmpfs rw\n"
    "4 1 0:52 / /mnt ro - ext4 /dev/sdb ro\n"
)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/", "/dev/sda1"),
        ("/home/x", "/dev/sda1"),
        ("/mnt/store/a/b", "server:/export"),
        ("/mnt/storehouse", "/dev/sdb"),
    ],
)
def test_the_mount_of_a_path(path: str, source: str) -> None:
    mount = mount_of(path, MOUNTS)
    assert mount is not None
    assert mount.source == source


@pytest.mark.parametrize(
    ("file_system", "kind"),
    [
        ("ext4", "local"),
        ("nfs4", "network"),
        ("lustre", "network"),
        ("fuse.sshfs", "network"),
        ("fuse.something", "fuse"),
        ("overlay", "layered"),
        ("tmpfs", "memory"),
        ("9p", "host"),
    ],
)
def test_kinds_of_file_systems(file_system: str, kind: str) -> None:
    assert disks.kind_of(file_system) == kind


def test_a_partition_leads_to_its_disk(tree: Tree) -> None:
    root = tree(
        {
            "proc/self/mountinfo": "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n",
            "sys/devices/pci/sda/sda1/partition": "1\n",
            "sys/devices/pci/sda/queue/rotational": "1\n",
            "data/photos/x": "",
        }
    )
    (root / "sys/dev/block").mkdir(parents=True)
    (root / "sys/dev/block/8:1").symlink_to(root / "sys/devices/pci/sda/sda1")
    (disk,) = disks.examine_all(["/data/photos"], root) or ()
    assert (disk.device, disk.rotational, disk.kind, disk.exists) == ("sda", True, "local", True)
    assert not disk.read_only
    assert disk.free_bytes is not None


def test_a_path_that_is_not_there_and_a_share(tree: Tree) -> None:
    root = tree({"proc/self/mountinfo": "1 0 0:9 / / ro - nfs4 server:/x ro\n", "a": ""})
    (disk,) = disks.examine_all(["/no/such"], root) or ()
    assert (disk.exists, disk.kind, disk.device, disk.read_only) == (False, "network", None, True)


def test_without_mounts_nothing_is_said_of_disks(tree: Tree) -> None:
    assert disks.examine_all(["/"], tree({"empty": ""})) is None
