"""Inside a trial's supervisor: every place that can be written becomes a private copy.

Each writable folder gets an overlay: what is there can be read, what is written goes to a scratch
folder, and is thrown away with the trial. What cannot be overlaid becomes read-only. Devices,
shared memory, ``/proc``, ``/sys`` and ``/run`` stay as they are: they hold no user's files, and
training needs them.

Where nothing can be mounted, the trial runs in copies (``launch.copies``), and Landlock forbids it
to write anywhere else.

Method: overlayfs of Linux in a mount namespace of the trial's own. The mounts end with the last
process of the trial, whoever kills it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from hotlap.launch import kernel_mounts as kernel
from hotlap.launch import landlock
from hotlap.launch.kernel_mounts import Mount

KEPT: Final = ("/proc", "/sys", "/dev", "/run")
"""Trees that stay as they are, unless the user's own folders lie in them."""

_NO_FILES: Final = frozenset(
    "proc sysfs devtmpfs devpts cgroup cgroup2 mqueue securityfs debugfs tracefs bpf configfs "
    "pstore fusectl hugetlbfs binfmt_misc rpc_pipefs autofs nsfs efivarfs selinuxfs".split()
)
_SYSTEM: Final = frozenset("/bin /boot /etc /lib /lib32 /lib64 /libx32 /sbin /usr".split())
"""Trees that only root may write to: whoever needs a user namespace sees them read-only."""
_PROBE: Final = ".hotlap-probe-"
_MOST_PLACES: Final = 200
_MOST_NAMES: Final = 500
_DEPTH: Final = 6
_FOREIGN_DEPTH: Final = 4


@dataclass
class Containment:
    """What was contained, and how it shows.

    copies: folders whose changes stay in the trial. read_only: folders that refuse changes.
    probes: files that were written inside, and that must not be there from outside.
    open_places: folders that could not be contained, with the reason.
    failures: folders of which no copy could be made, with the reason; they may be read-only.
    """

    copies: list[str] = field(default_factory=list)
    read_only: list[str] = field(default_factory=list)
    probes: list[str] = field(default_factory=list)
    open_places: list[tuple[str, str]] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)


def contain(
    must: Sequence[str], scratch: Sequence[str], through: Sequence[str], token: str
) -> Containment:
    """Contain this process and all that it will start.

    must: folders whose writes the trial needs (start directory, temporary folder, home).
    scratch: folders for the copies, in different trees, so that each tree finds one outside of
    itself. through: folders that really are written (the trial's own record).
    token: part of the names of the probes.
    Raises OSError where this system allows no mounts of one's own.
    """
    by_namespace = kernel.have_own_mounts()
    done = Containment()
    work = _Work(kernel.read_mounts(), by_namespace, scratch, done)
    doors = [(path, os.open(path, os.O_PATH)) for path in through]
    for place in work.places(must):
        work.cover(place)
    for path, door in doors:
        kernel.mount(f"/proc/self/fd/{door}", path, None, kernel.BIND)
        os.close(door)
    work.close_rest()
    _probe(done, [*must, *done.copies], token)
    return done


def forbid(
    must: Sequence[str], scratch: Sequence[str], through: Sequence[str], token: str
) -> Containment:
    """Forbid this process, and all that it will start, to write outside of the scratch folders.

    The arguments are those of ``contain``; here nothing of ``must`` may be written.
    Raises OSError where the kernel has no Landlock.
    """
    landlock.write_only_below([*scratch, *through, *KEPT])
    done = Containment(copies=list(scratch), read_only=["/"])
    _probe(done, must, token)
    return done


def remove(path: str) -> None:
    """Remove a scratch folder, with the folder of overlayfs in it that nobody may enter."""
    for place, names, _ in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                inner = os.path.join(place, name)
                if not os.path.islink(inner):
                    os.chmod(inner, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def within(path: str, tree: str) -> bool:
    """Tell whether a path is a folder or lies below it."""
    return path == tree or tree == "/" or path.startswith(tree + "/")


def leaks(done: Containment) -> list[str]:
    """Return the probes that can be seen: to be asked by a process outside of the trial."""
    return [path for path in done.probes if os.path.lexists(path)]


@dataclass(frozen=True)
class _Place:
    """A folder to be covered, held open: other covers may hide it by then."""

    path: str
    handle: int
    mount: Mount


class _Work:
    """The covering of one process's folders, in the order of their paths."""

    def __init__(
        self, mounts: list[Mount], by_namespace: bool, scratch: Sequence[str], done: Containment
    ) -> None:
        self._mounts = [one for one in mounts if os.path.lexists(one.path)]
        self._by_namespace = by_namespace
        self._done = done
        self._bases = [(os.path.realpath(one), os.open(one, os.O_RDONLY)) for one in scratch]
        self._count = 0

    def places(self, must: Sequence[str]) -> list[_Place]:
        """Return the folders to cover and the mounts that covering would hide, by path."""
        found: dict[str, Mount] = {}
        for one in self._mounts:
            if one.path == "/":
                for name in sorted(os.listdir("/")):
                    self._descend(f"/{name}", one, found, 0)
            elif not _is_kept(one.path):
                found[one.path] = one
        for path in must:
            real = os.path.realpath(path)
            if _is_kept(real) and os.path.isdir(real):
                found[real] = self._mount_of(real)
            if self._by_namespace and (deepest := _deepest_foreign(real)):
                found.setdefault(deepest, self._mount_of(deepest))
        if len(found) > _MOST_PLACES:
            raise OSError(f"{len(found)} mounts and folders would have to be covered one by one")
        return [_Place(path, os.open(path, os.O_PATH), found[path]) for path in sorted(found)]

    def _descend(self, path: str, mount: Mount, found: dict[str, Mount], depth: int) -> None:
        """Add a folder of the root's disk; its children where the kernel forbids it as a whole.

        In a user namespace a folder with mounts below cannot be overlaid.
        """
        if _is_kept(path) or os.path.islink(path) or not os.path.isdir(path):
            return
        if any(one.path == path for one in self._mounts):
            return
        if self._by_namespace and path in _SYSTEM:
            return
        holds_mounts = any(one.path.startswith(path + "/") for one in self._mounts)
        if not (holds_mounts and self._by_namespace):
            found[path] = mount
            if self._by_namespace:
                self._foreign_below(path, mount, found)
        elif depth < _DEPTH:
            with contextlib.suppress(OSError):
                for name in sorted(os.listdir(path)):
                    self._descend(f"{path}/{name}", mount, found, depth + 1)

    def _foreign_below(self, path: str, mount: Mount, found: dict[str, Mount]) -> None:
        """Add the folders below that we may write to but do not own.

        In a user namespace other owners have no number, so an overlay cannot copy such a folder
        into its layer; as the root of an overlay of its own it need not be copied.
        """
        if path.count("/") > _FOREIGN_DEPTH:
            return
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(path))[:_MOST_NAMES]:
                below = f"{path}/{name}"
                if os.path.islink(below) or not os.path.isdir(below) or _is_ours(below):
                    continue
                if os.access(below, os.W_OK):
                    found[below] = mount
                self._foreign_below(below, mount, found)

    def _mount_of(self, path: str) -> Mount:
        return max(
            (one for one in self._mounts if within(path, one.path)), key=lambda one: len(one.path)
        )

    def cover(self, place: _Place) -> None:
        """Overlay a folder; bring a mount back read-only that cannot be overlaid."""
        is_folder = stat.S_ISDIR(os.stat(place.handle).st_mode)
        has_files = place.mount.kind not in _NO_FILES
        why = "no copy can be laid over it"
        try:
            if is_folder and has_files and place.mount.is_writable:
                self._overlay(place)
                self._done.copies.append(place.path)
                return
        except OSError as error:
            why = f"{why} ({error.strerror or error})"
            self._done.failures.append((place.path, why))
        try:
            if self._is_hidden(place.path):
                source = f"/proc/self/fd/{place.handle}"
                kernel.mount(source, place.path, None, kernel.BIND | kernel.RECURSIVE)
            if has_files and place.mount.is_writable and place.path == place.mount.path:
                self._forbid(place.path, place.mount.flags)
        except OSError as error:
            self._done.open_places.append((place.path, f"{why}, nor can it be closed: {error}"))
        finally:
            os.close(place.handle)

    def close_rest(self) -> None:
        """Make the root read-only: what lies on its disk and is not covered refuses changes."""
        root = self._mount_of("/")
        if root.is_writable:
            try:
                self._forbid("/", root.flags)
            except OSError as error:
                self._done.open_places.append(("/", f"it cannot be made read-only: {error}"))

    def _forbid(self, path: str, flags: int) -> None:
        kernel.mount(None, path, None, kernel.REMOUNT | kernel.BIND | kernel.READ_ONLY | flags)
        self._done.read_only.append(path)

    def _is_hidden(self, path: str) -> bool:
        return any(within(path, copy) for copy in self._done.copies)

    def _overlay(self, place: _Place) -> None:
        """Lay an overlay over a folder; raises OSError when no scratch folder suits it."""
        device = os.stat(place.handle).st_dev
        bases = [(p, h) for p, h in self._bases if not within(p, place.path)]
        # The same disk first: a checkpoint should cost in the trial what it costs outside.
        bases.sort(key=lambda one: os.stat(one[1]).st_dev != device)
        last: OSError = OSError(0, "no scratch folder lies outside of it")
        for _, base in bases:
            for in_memory in (False, True):
                try:
                    self._overlay_on(place, base, in_memory)
                    return
                except OSError as error:
                    last = error
        raise last

    def _overlay_on(self, place: _Place, base: int, in_memory: bool) -> None:
        self._count += 1
        name = f"{self._count:03d}"
        os.mkdir(name, 0o700, dir_fd=base)
        folder = os.open(name, os.O_RDONLY, dir_fd=base)
        try:
            if in_memory:
                kernel.mount("hotlap-trial", f"/proc/self/fd/{folder}", "tmpfs", 0, "mode=700")
                os.close(folder)
                folder = os.open(name, os.O_RDONLY, dir_fd=base)
            layers = (place.handle, *_layers(folder, place.handle))
            try:
                self._try_options(place, layers)
            finally:
                for one in layers[1:]:
                    os.close(one)
        finally:
            os.close(folder)

    def _try_options(self, place: _Place, layers: tuple[int, int, int]) -> None:
        wished = ("userxattr",) if self._by_namespace else ("redirect_dir=on",)
        flags = place.mount.flags & ~kernel.READ_ONLY
        try:
            kernel.overlay(place.path, layers, flags, wished)
        except OSError:
            kernel.overlay(place.path, layers, flags, ())


def _layers(folder: int, like: int) -> tuple[int, int]:
    """Make the writable layer, which lends the merged folder its owner and mode."""
    status = os.stat(like)
    for name in ("upper", "work"):
        os.mkdir(name, 0o700, dir_fd=folder)
    upper = os.open("upper", os.O_RDONLY, dir_fd=folder)
    with contextlib.suppress(OSError):
        os.fchown(upper, status.st_uid, status.st_gid)
    os.fchmod(upper, stat.S_IMODE(status.st_mode))
    return upper, os.open("work", os.O_RDONLY, dir_fd=folder)


def _probe(done: Containment, places: Sequence[str], token: str) -> None:
    """Write a file into each place, and keep the names of those that could be written."""
    for place in dict.fromkeys(places):
        path = os.path.join(place, _PROBE + token)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            continue  # two names of one folder
        except OSError:
            continue  # not ours to write, or read-only: no harm can be done there
        done.probes.append(path)


def forget_probes(done: Containment) -> None:
    """Remove the probes from inside: the script is to see its own folders only."""
    for path in done.probes:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _is_ours(path: str) -> bool:
    status = os.lstat(path)
    return status.st_uid == os.geteuid() and status.st_gid == os.getegid()


def _deepest_foreign(path: str) -> str | None:
    """Return the lowest folder on the way to a path that has another owner; None for the root."""
    while path != "/":
        if not _is_ours(path):
            return path
        path = os.path.dirname(path)
    return None


def _is_kept(path: str) -> bool:
    return any(within(path, tree) for tree in KEPT)
