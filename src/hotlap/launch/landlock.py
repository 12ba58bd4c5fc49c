"""Linux's Landlock: a process forbids itself, and all that it starts, to write outside of folders.

It needs no rights, so it works in containers where nothing can be mounted (Linux 5.13 and newer,
if built in). What it cannot forbid is changing the mode and the times of a file.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterable
from typing import Final

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of the system calls; the same on all machines but Alpha."""
_VERSION_FLAG: Final = 1
_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38

_WRITE_FILE: Final = 1 << 1
_TRUNCATE: Final = 1 << 14
_OF_FOLDERS: Final = sum(1 << bit for bit in (4, 5, 6, 7, 8, 9, 10, 11, 12))
"""Removing folders and files; making devices, folders, files, sockets, pipes and links."""
_REFER: Final = 1 << 13


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def version() -> int:
    """Return the version of Landlock here; raises OSError where there is none."""
    return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))


def write_only_below(folders: Iterable[str]) -> None:
    """Forbid this process to write anywhere but below these folders. Raises OSError if it cannot.

    Files may be named too. What does not exist is left out.
    """
    known = version()
    handled = _WRITE_FILE | _OF_FOLDERS
    if known >= 2:
        handled |= _REFER
    if known >= 3:
        handled |= _TRUNCATE
    attributes = _Ruleset(handled)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    rules = _call(_CREATE, ctypes.byref(attributes), size, ctypes.c_uint32(0))
    try:
        for folder in folders:
            with contextlib.suppress(FileNotFoundError):
                _allow(rules, folder, handled)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "the kernel keeps privileges of programs")
        _call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))
    finally:
        os.close(rules)


def _allow(rules: int, path: str, handled: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        allowed = handled if is_folder else handled & (_WRITE_FILE | _TRUNCATE)
        beneath = _Beneath(allowed, handle)
        rule = ctypes.byref(beneath)
        _call(_ADD, ctypes.c_int(rules), ctypes.c_int(_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(handle)


def _call(number: int, *arguments: object) -> int:
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except AttributeError:
        raise OSError("this system has no Landlock") from None
    call.restype = ctypes.c_long
    result: int = call(ctypes.c_long(number), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
