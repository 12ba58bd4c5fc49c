"""Calls worth counting by the user's line: reads of tensors, writes, checkpoints, copies.

Each is an entry of a table ``(family, kind, file, line) -> [count, ns, bytes]``; the table is
written as a whole now and then, so its size on disk is bounded.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from time import perf_counter_ns
from typing import Any, Final

from hotlap.fast.choice import Tally
from hotlap.probe.journal import Journal
from hotlap.probe.ledger import (
    BACKWARD,
    CHECKPOINT,
    COMMUNICATION,
    COMPILE,
    DATA_WAIT,
    LOGGING,
    OPTIMIZER,
    TRANSFER,
    Ledger,
)
from hotlap.probe.places import Places
from hotlap.runs import frames
from hotlap.sites.hub import Hub
from hotlap.sites.tensor_copy import Move

LIMIT: Final = 300
_QUIET: Final = frozenset((BACKWARD, OPTIMIZER, DATA_WAIT, COMPILE))
"""Where torch itself reads tensors by the hundred: not the user's doing, and not looked at."""
_NOT_MOVING: Final = frozenset((TRANSFER, BACKWARD, COMPILE))
_OWN: Final = "hotlap."
_MODULES_OWN: Final = "torch.nn.modules.module"
_ON_HOST: Final = frozenset(("cpu", "meta"))


class Touches:
    """The table, and the watchers that fill it."""

    def __init__(self, ledger: Ledger, journal: Journal, places: Places) -> None:
        self._ledger = ledger
        self._journal = journal
        self._places = places
        self._table: dict[tuple[Any, ...], Tally] = {}
        self._direct: dict[tuple[Any, ...], tuple[Any, Tally]] = {}
        self._copying = False
        journal.status.append(self._write)

    def attach(self, hub: Hub) -> None:
        """Subscribe to the sites whose calls are counted."""
        hub.subscribe("tensor_read", self.read_begins, self.read_ended)
        hub.channel("tensor_read").unheard = (self._ledger, _QUIET)
        hub.subscribe("tensor_copy", self.copy_begins, self.copy_ended)
        hub.subscribe("write", self.write_begins, self.write_ended)
        hub.subscribe("save", self.save_begins, self.save_ended)
        hub.subscribe("collective", self.collective_begins, self.collective_ended)

    # -- reads: counted beside the accounts, since a read may lie in any phase -----------------

    def read_begins(self, kind: str) -> int:  # noqa: ARG002 - the subject of the channel
        """Start the clock of an outermost read. Cost: 0.1 us where it is not looked at."""
        ledger = self._ledger
        if ledger.reading or ledger.current in _QUIET or ledger.thread != get_ident():
            return 0
        ledger.reading = True
        return perf_counter_ns()

    def read_ended(self, begun: int, subject: tuple[str, str | None]) -> None:
        """Count a read; the kind names the device when it is not the host: ``item, cuda``."""
        duration = perf_counter_ns() - begun
        self._ledger.reading = False
        kind, device = subject
        # Most reads come from few places of the user's own code: there the entry is remembered by
        # the instruction. The code object is kept with it, so that its id stays its own.
        caller = sys._getframe(2)
        code = caller.f_code
        key = (id(code), caller.f_lasti, kind, device)
        known = self._direct.get(key)
        if known is not None:
            entry = known[1]
            entry[0] += 1
            entry[1] += duration
            return
        if device is not None and device not in _ON_HOST:
            kind = f"{kind}, {device}"
        entry = self._count("sync", kind, duration, None)
        if len(self._direct) < LIMIT and self._places.is_users(code.co_filename):
            self._direct[key] = (code, entry)

    def remembered(self, code: Any, instruction: int, kind: str) -> Tally | None:
        """Return the entry of an instruction that reads tensors on the host, None without one."""
        known = self._direct.get((id(code), instruction, kind, "cpu"))
        return None if known is None else known[1]

    # -- copies between devices ------------------------------------------------------------------

    def copy_begins(self, _: Any) -> int:
        """Start the clock of a copy that may cross devices. One inside a read is part of it."""
        ledger = self._ledger
        if ledger.reading or self._copying or ledger.current in _NOT_MOVING or not ledger.mine():
            return 0
        self._copying = True
        return perf_counter_ns()

    def copy_ended(self, begun: int, move: Move | None) -> None:
        """Book a copy that crossed devices as transfer.

        A copy to the host that waits is a read like ``.cpu()``: nearly all of its time is spent
        waiting for the device's queue, so it is counted with the reads and stays in its phase.
        """
        duration = perf_counter_ns() - begun
        self._copying = False
        if move is None:
            return
        if move.target == "cpu" and not move.non_blocking:
            self._count("sync", f"copy, {move.source}", duration, move.size_bytes)
            return
        self._ledger.move(duration, TRANSFER)
        words = [f"{move.source} to {move.target}"]
        if move.pinned is not None:
            words.append("pinned" if move.pinned else "pageable")
        words.append("non_blocking" if move.non_blocking else "blocking")
        self._count("transfer", ", ".join(words), duration, move.size_bytes)

    # -- spans that have an account of their own -------------------------------------------------

    def write_begins(self, _: Any) -> tuple[int, int] | None:
        """Open the logging account for a write to a standard stream or a log."""
        return self._open(LOGGING)

    def write_ended(self, token: tuple[int, int] | None, subject: tuple[str, int | None]) -> None:
        """Close it and count the write."""
        kind, size = subject
        self._shut(token, "logging", kind, size)

    def save_begins(self, _: Any) -> tuple[int, int] | None:
        """Open the checkpoint account."""
        return self._open(CHECKPOINT)

    def save_ended(self, token: tuple[int, int] | None, target: Any) -> None:
        """Close it and count the checkpoint, with its size if it is a file."""
        self._shut(token, "checkpoint", "save", _file_size(target) if token else None)

    def collective_begins(self, _: Any) -> tuple[int, int] | None:
        """Open the communication account."""
        return self._open(COMMUNICATION)

    def collective_ended(self, token: tuple[int, int] | None, name: str) -> None:
        """Close it and count the collective."""
        self._shut(token, "communication", name, None)

    def _open(self, account: int) -> tuple[int, int] | None:
        ledger = self._ledger
        if not ledger.mine() or ledger.inside(account):
            return None
        token = ledger.enter(account)
        return token, ledger.mark

    def _shut(
        self, token: tuple[int, int] | None, family: str, kind: str, size: int | None
    ) -> None:
        if token is None:
            return
        opened, begun = token
        duration = perf_counter_ns() - begun
        self._ledger.leave(opened)
        self._count(family, kind, duration, size)

    # -- the table ---------------------------------------------------------------------------------

    def _count(self, family: str, kind: str, duration_ns: int, size: int | None) -> Tally:
        frame = sys._getframe(3)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OWN):
            frame = frame.f_back
        if family == "transfer" and frame.f_globals.get("__name__") == _MODULES_OWN:
            # `model.to(device)`: the user's line is theirs, but it is no copy of a batch.
            kind = f"module, {kind}"
        if family == "sync":
            package = self._calling_library(frame)
            if package:
                kind = f"{kind} in {package}"
        mine = self._places.find(frame)
        key: tuple[Any, ...]
        if mine is None:
            key = (family, kind, None, 0, "")
        else:
            code = mine.f_code
            key = (family, kind, code.co_filename, mine.f_lineno, code.co_name)
        entry = self._table.get(key)
        if entry is None:
            if len(self._table) >= LIMIT:
                key = (family, kind, None, 0, "")
            entry = self._table.setdefault(key, Tally(4))
        entry[0] += 1
        entry[1] += duration_ns
        if size is not None:
            entry[2] += size
            entry[3] += 1
        return entry

    def _calling_library(self, frame: Any) -> str | None:
        """Return the package whose code makes this call, None when it is the user's own."""
        name = frame.f_globals.get("__name__", "")
        if self._places.is_users(frame.f_code.co_filename) or name == "torch._tensor":
            return None
        return str(name).split(".")[0]

    def _write(self) -> None:
        if not self._table:
            return
        rows = [
            {
                "family": family,
                "kind": kind,
                "place": None
                if filename is None
                else {"file": self._places.shown(filename), "line": line, "function": function},
                "count": count,
                "ns": ns,
                "size_bytes": size if sized else None,
            }
            for (family, kind, filename, line, function), (count, ns, size, sized) in (
                self._table.items()
            )
        ]
        self._journal.recording.add(frames.encode_json("tuch", rows))


def _file_size(target: Any) -> int | None:
    import os

    try:
        return os.stat(target).st_size if isinstance(target, (str, os.PathLike)) else None
    except OSError:
        return None
