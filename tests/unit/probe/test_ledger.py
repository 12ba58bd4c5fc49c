"""Exclusive accounts: whatever happens in whatever order, their sum is the wall time."""

from __future__ import annotations

import random
import threading

import pytest

from hotlap.fast import choice, reference
from hotlap.probe.ledger import (
    BACKWARD,
    CHECKPOINT,
    EPOCH_EDGE,
    FORWARD,
    LOGGING,
    OPTIMIZER,
    OTHER,
    WIDTH,
    Ledger,
)
from unit.probe.clock import Clock

SOURCES = {"python": reference, "compiled": choice.hooks}
Tally = reference.Tally


@pytest.fixture(params=SOURCES, autouse=True)
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test here run with both ledgers."""
    found = SOURCES[request.param]
    if found is None:
        pytest.skip(f"no compiled hooks: {choice.because}")
    monkeypatch.setitem(globals(), "Ledger", found.Ledger)
    monkeypatch.setitem(globals(), "Tally", found.Tally)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock().install(monkeypatch)


def spent(ledger: Ledger) -> dict[int, int]:
    ledger.settle()
    return {index: ns for index, ns in enumerate(ledger.accounts) if ns}


def test_a_span_inside_another_is_taken_out_of_it(clock: Clock) -> None:
    ledger = Ledger()
    clock.pass_ns(1)
    outer = ledger.enter(FORWARD)
    clock.pass_ns(10)
    inner = ledger.enter(LOGGING)
    clock.pass_ns(100)
    ledger.leave(inner)
    clock.pass_ns(1000)
    ledger.leave(outer)
    clock.pass_ns(10000)
    assert spent(ledger) == {OTHER: 10001, FORWARD: 1010, LOGGING: 100}


def test_a_span_left_open_inside_is_closed_with_the_outer_one(clock: Clock) -> None:
    ledger = Ledger()
    outer = ledger.enter(OPTIMIZER)
    lost = ledger.enter(FORWARD)
    clock.pass_ns(5)
    ledger.leave(outer)
    clock.pass_ns(7)
    ledger.leave(lost)  # comes late: nothing of it is open any more
    clock.pass_ns(9)
    assert ledger.stack == []
    assert spent(ledger) == {FORWARD: 5, OTHER: 16}


@pytest.mark.parametrize("token", [0, 1, 5])
def test_leaving_what_was_never_entered_does_nothing(clock: Clock, token: int) -> None:
    ledger = Ledger()
    clock.pass_ns(3)
    ledger.leave(token)
    assert spent(ledger) == {OTHER: 3}


def test_leaving_twice_closes_once(clock: Clock) -> None:
    ledger = Ledger()
    token = ledger.enter(FORWARD)
    clock.pass_ns(3)
    ledger.leave(token)
    ledger.leave(token)
    clock.pass_ns(4)
    assert spent(ledger) == {FORWARD: 3, OTHER: 4}


def test_what_rests_outside_of_spans_can_change_inside_one(clock: Clock) -> None:
    ledger = Ledger()
    ledger.rest_on(EPOCH_EDGE)
    clock.pass_ns(1)
    token = ledger.enter(CHECKPOINT)
    nested = ledger.enter(LOGGING)
    clock.pass_ns(10)
    ledger.rest_on(OTHER)
    clock.pass_ns(100)
    ledger.leave(nested)
    clock.pass_ns(1000)
    ledger.leave(token)
    clock.pass_ns(10000)
    assert spent(ledger) == {EPOCH_EDGE: 1, LOGGING: 110, CHECKPOINT: 1000, OTHER: 10000}


def test_moved_time_leaves_the_open_account(clock: Clock) -> None:
    ledger = Ledger()
    token = ledger.enter(FORWARD)
    clock.pass_ns(10)
    ledger.move(4, BACKWARD)
    ledger.leave(token)
    assert spent(ledger) == {FORWARD: 6, BACKWARD: 4}


def test_inside_sees_what_waits_below(clock: Clock) -> None:
    ledger = Ledger()
    assert ledger.inside(OTHER)
    ledger.enter(FORWARD)
    token = ledger.enter(LOGGING)
    assert ledger.inside(FORWARD)
    assert ledger.inside(LOGGING)
    assert not ledger.inside(BACKWARD)
    ledger.leave(token)
    assert not ledger.inside(LOGGING)
    clock.pass_ns(1)


def test_only_one_thread_is_accounted() -> None:
    ledger = Ledger()
    answers = [ledger.mine()]
    thread = threading.Thread(target=lambda: answers.append(ledger.mine()))
    thread.start()
    thread.join()
    assert answers == [True, False]


@pytest.mark.parametrize("seed", range(60))
def test_any_order_of_calls_accounts_for_all_the_time(clock: Clock, seed: int) -> None:
    generator = random.Random(seed)
    begun = clock.now
    ledger = Ledger()
    first = ledger.accounts
    books = [first]
    tokens = [0]
    for _ in range(400):
        clock.pass_ns(generator.randrange(50))
        match generator.randrange(8):
            case 0 | 1 | 2:
                tokens.append(ledger.enter(generator.randrange(WIDTH)))
            case 3 | 4:
                ledger.leave(generator.choice(tokens))  # often a stale one
            case 5:
                ledger.rest_on(generator.choice((OTHER, EPOCH_EDGE)))
            case 6:
                ledger.move(generator.randrange(100), generator.randrange(WIDTH))
            case 7:
                # The timeline swaps the book at any time, after it has settled the old one.
                ledger.settle()
                ledger.accounts = generator.choice((first, Tally(WIDTH)))
                if ledger.accounts is not first:
                    books.append(ledger.accounts)
        assert len(ledger.stack) < 400
    ledger.settle()
    assert sum(map(sum, books)) == clock.now - begun
