from __future__ import annotations

import os
import sys
import threading
from typing import Any

import pytest

from hotlap.machine import allocators, kernel
from hotlap.machine.pressure import read_pressure
from hotlap.machine.readfile import read
from unit.machine.machines import Tree

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="facilities of Linux")


def thread_file(name: str) -> str:
    return f"proc/self/task/{threading.get_native_id()}/{name}"


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("5 6 7\n", (5, 6, 7)), ("0 0 0", (0, 0, 0)), ("", None), ("a b c", None), ("1 2", None)],
)
def test_schedstat(text: str, parsed: Any) -> None:
    assert kernel.parse_schedstat(text) == parsed


def test_a_kernel_that_writes_zeros_for_ever(tree: Tree) -> None:
    found = kernel.try_schedstat(tree({thread_file("schedstat"): "0 0 0\n"}))
    assert found.works is False
    assert "does not move" in found.seen


def test_a_kernel_without_the_files(tree: Tree) -> None:
    root = tree({"empty": ""})
    assert kernel.try_schedstat(root).works is False
    assert kernel.try_thread_io(root).works is False
    assert kernel.try_pressure(root) == kernel.Facility(False, "/proc/pressure cannot be read")
    assert kernel.try_namespaces(root).works is None


def test_io_counters_that_do_not_move(tree: Tree) -> None:
    found = kernel.try_thread_io(tree({thread_file("io"): "rchar: 5\nread_bytes: 0\n"}))
    assert found.works is False
    assert "do not move" in found.seen


@on_linux
def test_the_real_kernel_agrees_with_its_files() -> None:
    task = f"/proc/self/task/{threading.get_native_id()}"
    assert kernel.try_thread_io().works in (True, False)
    if not os.path.exists(f"{task}/schedstat"):
        assert kernel.try_schedstat().works is False
    assert kernel.try_pressure().works == (read_pressure() is not None)


@on_linux
def test_the_overlay_leaves_nothing_behind() -> None:
    kernel.try_namespaces()
    assert "lowerdir=lower," not in (read("/proc/self/mountinfo") or "")
    assert not {"lower", "upper", "work", "merged"} <= set(os.listdir("/tmp"))


@pytest.mark.parametrize(
    ("mark", "name"),
    [
        (".dockerenv", "docker"),
        ("run/.containerenv", "podman"),
        ("var/run/secrets/kubernetes.io/x", "kubernetes"),
        ("etc/hosts", None),
    ],
)
def test_marks_of_containers(tree: Tree, mark: str, name: Any) -> None:
    assert kernel.container(tree({mark: ""})) == name


LDCONFIG = """\
3 libs found in cache `/etc/ld.so.cache'
\tlibtcmalloc_minimal_debug.so.4 (libc6,x86-64) => /lib/libtcmalloc_minimal_debug.so.4
\tlibtcmalloc.so.4 (libc6,x86-64) => /lib/libtcmalloc.so.4
\tlibtcmalloc_minimal.so.4 (libc6,x86-64) => /lib/libtcmalloc_minimal.so.4
\tlibjemalloc.so.2 (libc6,x86-64) => /usr/lib/libjemalloc.so.2
\tlibc_malloc_debug.so.0 (libc6,x86-64) => /lib/libc_malloc_debug.so.0
"""


def test_allocators_of_ldconfig() -> None:
    assert allocators.choose(allocators.parse_ldconfig(LDCONFIG)) == {
        "tcmalloc": "/lib/libtcmalloc_minimal.so.4",
        "jemalloc": "/usr/lib/libjemalloc.so.2",
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/lib/libmimalloc.so.2.0", "mimalloc"),
        ("libmimalloc-secure.so", "mimalloc"),
        ("libjemalloc.2.dylib", "jemalloc"),
        ("libc_malloc_debug.so.0", None),
        ("libtcmalloc.a", None),
    ],
)
def test_names_of_allocators(path: str, name: Any) -> None:
    assert allocators.name_of(path) == name


def test_an_allocator_in_a_folder_of_an_environment(tree: Tree) -> None:
    root = tree({"lib/libtcmalloc_minimal.so.4": ""})
    found = allocators.find([str(root / "lib")])
    assert found["tcmalloc"]
    (root / "lib/libtcmalloc_minimal.so.4").rename(root / "lib/other")
    assert str(root) not in str(allocators.find([str(root / "lib")]))
