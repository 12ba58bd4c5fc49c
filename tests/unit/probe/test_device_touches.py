"""How copies and reads are booked: transfer, or waiting for a device."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hotlap.probe.journal import Journal
from hotlap.probe.ledger import BACKWARD, FORWARD, OTHER, TRANSFER, Ledger
from hotlap.probe.places import Places
from hotlap.probe.touches import Touches
from hotlap.runs import frames
from hotlap.runs.recording import Recording
from hotlap.sites.tensor_copy import Move

PINNED = Move("cpu", "cuda", True, True, 100)
PAGEABLE = Move("cpu", "cuda", False, False, 50)


class Book:
    """The table of touches, and the ledger beside it. Calls are made as a site makes them."""

    def __init__(self, tmp_path: Path) -> None:
        self.file = tmp_path / "process"
        self.ledger = Ledger()
        self.journal = Journal(Recording(self.file, "process"))
        self.touches = Touches(self.ledger, self.journal, Places(str(Path(__file__).parent)))

    def copy(self, move: Move | None) -> None:
        token = self.touches.copy_begins(None)
        if token:
            self.site(self.touches.copy_ended, token, move)

    def read(self, kind: str, device: str | None) -> None:
        token = self.touches.read_begins(kind)
        if token:
            self.site(self.touches.read_ended, token, (kind, device))

    @staticmethod
    def site(end: Any, token: int, subject: Any) -> None:
        end(token, subject)

    def rows(self) -> list[tuple[str, str, int, int | None]]:
        self.journal.close(self.ledger.settle(), [])
        found = frames.decode(self.file.read_bytes())
        tables = [one.json() for one in found if not isinstance(one, str) and one.tag == "tuch"]
        return [(row["family"], row["kind"], row["count"], row["size_bytes"]) for row in tables[-1]]


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def test_copies_to_a_device_are_transfer(book: Book) -> None:
    for _ in range(3):
        book.copy(PINNED)
    book.copy(PAGEABLE)
    book.copy(Move("cuda", "cuda", None, False, None))
    assert book.ledger.accounts[TRANSFER] > 0
    assert book.rows() == [
        ("transfer", "cpu to cuda, pinned, non_blocking", 3, 300),
        ("transfer", "cpu to cuda, pageable, blocking", 1, 50),
        ("transfer", "cuda to cuda, blocking", 1, None),
    ]


def test_what_crossed_nothing_is_no_transfer(book: Book) -> None:
    book.copy(None)
    book.read("item", "cpu")
    assert book.ledger.accounts[TRANSFER] == 0
    assert [row[0] for row in book.rows()] == ["sync"]


def test_a_copy_to_the_host_that_waits_is_a_read(book: Book) -> None:
    book.copy(Move("cuda", "cpu", False, False, 4))
    book.copy(Move("cuda", "cpu", True, True, 4))
    rows = book.rows()
    assert rows[0] == ("sync", "copy, cuda", 1, 4)
    assert rows[1] == ("transfer", "cuda to cpu, pinned, non_blocking", 1, 4)


def test_reads_name_the_device_unless_it_is_the_host(book: Book) -> None:
    for device in ("cpu", "cuda", "mps", None):
        book.read("item", device)
    assert [row[1] for row in book.rows()] == ["item", "item, cuda", "item, mps"]
    assert book.rows()[0][2] == 2


def test_a_copy_inside_a_read_is_part_of_it(book: Book) -> None:
    """``print`` of a tensor of a device moves it to the host first."""
    token = book.touches.read_begins("repr")
    book.copy(Move("cuda", "cpu", False, False, 4))
    book.site(book.touches.read_ended, token, ("repr", "cuda"))
    assert [row[1] for row in book.rows()] == ["repr, cuda"]


def test_a_copy_inside_a_copy_is_counted_once(book: Book) -> None:
    """A subclass with ``__torch_function__`` comes through the site twice."""
    token = book.touches.copy_begins(None)
    book.copy(PINNED)
    book.site(book.touches.copy_ended, token, PINNED)
    assert book.rows() == [("transfer", "cpu to cuda, pinned, non_blocking", 1, 100)]


def test_a_copy_that_raised_is_over(book: Book) -> None:
    book.site(book.touches.copy_ended, book.touches.copy_begins(None), None)
    book.copy(PINNED)
    assert [row[2] for row in book.rows()] == [1]


def test_transfer_is_taken_out_of_the_phase_that_it_lies_in(book: Book) -> None:
    token = book.ledger.enter(FORWARD)
    book.copy(PINNED)
    assert book.ledger.current == FORWARD
    book.ledger.leave(token)
    assert book.ledger.accounts[TRANSFER] > 0
    assert min(book.ledger.accounts) >= 0
    assert book.ledger.current == OTHER


def test_copies_inside_backward_are_not_looked_at(book: Book) -> None:
    token = book.ledger.enter(BACKWARD)
    book.copy(PINNED)
    book.ledger.leave(token)
    assert book.ledger.accounts[TRANSFER] == 0


def test_another_thread_is_not_looked_at(book: Book) -> None:
    """The thread that pins batches, say."""
    book.ledger.thread = -1
    book.copy(PINNED)
    book.read("item", "cuda")
    assert book.ledger.accounts[TRANSFER] == 0
    assert not book.touches._table


def test_parameters_of_a_module_are_told_apart_from_batches(book: Book) -> None:
    """``model.to(device)`` moves each parameter by a call from torch's own file."""
    namespace: dict[str, Any] = {"__name__": "torch.nn.modules.module"}
    library = f"{Path(sys.prefix, 'lib', 'site-packages', 'torch', 'module.py')}"
    source = "def convert(site, end, token, move):\n    site(end, token, move)\n"
    exec(compile(source, library, "exec"), namespace)
    namespace["convert"](
        book.site, book.touches.copy_ended, book.touches.copy_begins(None), PAGEABLE
    )
    assert book.rows() == [("transfer", "module, cpu to cuda, pageable, blocking", 1, 50)]
