"""Disks: bytes read and written, and what lies behind a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hotlap.machine.memory import space
from hotlap.machine.mounts import Mount, mount_of, read_mounts, real_path
from hotlap.machine.readfile import ROOT, read, read_int

_SECTOR_BYTES: Final = 512
"""The unit of the kernel's block counters, whatever the disk's own sector is."""

_NETWORK: Final = frozenset(
    "nfs nfs4 cifs smb2 smb3 smbfs afs ceph lustre gpfs beegfs orangefs pvfs2 glusterfs ocfs2 gfs2"
    " wekafs panfs fuse.sshfs fuse.s3fs fuse.gcsfuse fuse.goofys fuse.rclone fuse.juicefs"
    " fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.mount-s3 fuse.blobfuse fuse.blobfuse2"
    " fuse.alluxio-fuse fuse.seaweedfs fuse.moosefs fuse.mfs fuse.cvmfs2".split()
)
_HOST: Final = frozenset(
    {"9p", "virtiofs", "vboxsf", "prl_fs", "fuse.vmhgfs-fuse", "fuse.grpcfuse"}
)
_MEMORY: Final = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_LAYERED: Final = frozenset({"overlay", "aufs", "fuse.fuse-overlayfs", "overlayfs"})


@dataclass(frozen=True)
class Traffic:
    """Cumulative bytes of one disk, or of several summed."""

    read_bytes: int
    write_bytes: int


@dataclass(frozen=True)
class Disk:
    """What lies behind a path. None: not known.

    kind: ``local``, ``network``, ``memory``, ``layered`` (overlay: a container's own file system),
    ``host`` (a folder that the host of this virtual machine shares), ``fuse`` (a program serves
    it; what is behind is not known).
    device: name of the whole disk (``nvme0n1``). rotational: as the kernel says; virtual disks
    often say True whatever they are. virtual: the disk is one that a hypervisor shows.
    """

    path: str
    exists: bool
    mount_point: str
    file_system: str
    source: str
    kind: str
    read_only: bool
    device: str | None
    rotational: bool | None
    virtual: bool
    total_bytes: int | None
    free_bytes: int | None


def parse_diskstats(text: str) -> dict[str, Traffic]:
    """Parse ``/proc/diskstats`` by device, partitions included."""
    found: dict[str, Traffic] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 10:
            read_bytes, write_bytes = int(words[5]), int(words[9])
            found[words[2]] = Traffic(read_bytes * _SECTOR_BYTES, write_bytes * _SECTOR_BYTES)
    return found


def read_disks(root: Path = ROOT) -> dict[str, Traffic] | None:
    """Read the traffic of real disks by name; None without ``/proc/diskstats``.

    Partitions, loop devices, RAID and device-mapper volumes repeat what a disk below them carries:
    only devices with hardware (or a hypervisor) behind them count.
    """
    text = read(root / "proc/diskstats")
    if text is None:
        return None
    found = parse_diskstats(text)
    return {
        name: traffic
        for name, traffic in found.items()
        if os.path.exists(f"{root}/sys/block/{name}/device")
    }


def total(disks: dict[str, Traffic] | None) -> Traffic | None:
    """Sum the traffic of disks; None when there are none (containers may hide them)."""
    if not disks:
        return None
    return Traffic(
        sum(disk.read_bytes for disk in disks.values()),
        sum(disk.write_bytes for disk in disks.values()),
    )


def kind_of(file_system: str) -> str:
    """Return the kind of a file system type; the words stand at ``Disk``."""
    if file_system in _NETWORK:
        return "network"
    if file_system in _HOST:
        return "host"
    if file_system in _MEMORY:
        return "memory"
    if file_system in _LAYERED:
        return "layered"
    if file_system == "fuse" or file_system.startswith("fuse."):
        return "fuse"
    return "local"


def _block_device(mount: Mount, root: Path) -> Path | None:
    """Return the folder in ``/sys`` of the whole disk that a mount lies on, or None."""
    number = mount.device_number
    if number.startswith("0:"):
        # btrfs and ZFS number their volumes themselves; btrfs names the device as its source.
        name = mount.source.removeprefix("/dev/")
        link = root / "sys/class/block" / name
        if not mount.source.startswith("/dev/") or not link.exists():
            return None
    else:
        link = root / "sys/dev/block" / number
    if not link.exists():
        return None
    folder = link.resolve()
    return folder.parent if (folder / "partition").exists() else folder


def _below(folder: Path) -> Path:
    """Follow a RAID or device-mapper volume down to its only disk, if it has only one."""
    for _ in range(8):
        slaves = folder / "slaves"
        names = os.listdir(slaves) if slaves.is_dir() else []
        if len(names) != 1:
            break
        below = (slaves / names[0]).resolve()
        folder = below.parent if (below / "partition").exists() else below
    return folder


def examine(path: str | os.PathLike[str], mounts: Sequence[Mount], root: Path = ROOT) -> Disk:
    """Return what lies behind a path; for one that does not exist, behind its nearest parent.

    mounts: of ``read_mounts``; must not be empty. With a ``root`` other than ``/``, the path is
    taken as it stands. Raises ValueError when no mount covers the path.
    """
    wanted = real_path(path) if root == ROOT else os.fspath(path)
    mount = mount_of(wanted, mounts)
    if mount is None:
        raise ValueError(f"no mount point covers {wanted}")
    folder = _block_device(mount, root)
    device = _below(folder) if folder is not None else None
    flag = read_int(device / "queue/rotational") if device is not None else None
    existing = root / wanted.lstrip("/")
    exists = existing.exists()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    size = space(existing)
    return Disk(
        path=os.fspath(path),
        exists=exists,
        mount_point=mount.point,
        file_system=mount.file_system,
        source=mount.source,
        kind=kind_of(mount.file_system),
        read_only="ro" in mount.options,
        device=device.name if device is not None else None,
        rotational=None if flag is None else flag == 1,
        virtual=device is not None and device.name.startswith(("vd", "xvd")),
        total_bytes=size.total_bytes if size else None,
        free_bytes=size.free_bytes if size else None,
    )


def examine_all(
    paths: Sequence[str | os.PathLike[str]], root: Path = ROOT
) -> tuple[Disk, ...] | None:
    """Return what lies behind each path; None where mounts cannot be read (no ``/proc``)."""
    mounts = read_mounts(root)
    if not mounts:
        return None
    return tuple(examine(path, mounts, root) for path in paths)
