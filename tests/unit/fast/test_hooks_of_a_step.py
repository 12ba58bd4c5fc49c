"""Compiled hooks of optimizers, loaders and fetchers; and that nothing is kept of any call."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from hotlap.fast import choice
from hotlap.fast.choice import Feed, Sample
from hotlap.probe.ledger import BACKWARD, DATA_WAIT, OPTIMIZER
from unit.fast.bench import Bench

pytestmark = pytest.mark.skipif(choice.hooks is None, reason=f"no compiled hooks: {choice.because}")


@pytest.fixture
def bench() -> Bench:
    return Bench()


class Optimizer:
    """An optimizer."""


def test_a_step_that_raised_is_handed_over_to_python(bench: Bench) -> None:
    tokens: dict[int, Any] = {}
    begun: dict[int, Any] = {}
    optimizer = Optimizer()
    before = bench.make("step_begins", print, begun, tokens)
    before(optimizer, (), {})
    assert (bench.ledger.current, begun, tokens) == (OPTIMIZER, {}, {})
    before.__wrapped__ = None
    before(optimizer, (), {})  # the step raised, and is tried again
    assert begun == tokens == {id(optimizer): 1}
    assert bench.left == ["step_begins"]


def test_an_optimizer_at_an_address_that_was_anothers(bench: Bench) -> None:
    told: list[int] = []
    extra: tuple[Any, ...] = ({}, {}, lambda _: told.append(0) or len(told) - 1)  # type: ignore[func-returns-value]
    before = bench.make("step_begins", len, *extra)
    after = bench.make("step_ended", len, *extra)
    for _ in range(20):
        optimizer = Optimizer()
        for _ in range(3):
            before(optimizer, (), {})
            after(optimizer, (), {})
        del optimizer
    assert len(told) == 20
    assert [raw[2] for raw in bench.standing.kept.drain()] == [n for n in range(20) for _ in "123"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_a_signal_handler_raises_while_an_optimizer_is_looked_up(
    bench: Bench, error: type[BaseException]
) -> None:
    def ordinal(_: object) -> int:
        raise error  # as a handler does that runs at the entry of this function

    optimizer = Optimizer()
    extra: tuple[Any, ...] = ({}, {}, ordinal)
    bench.make("step_begins", len, *extra)(optimizer, (), {})
    after = bench.make("step_ended", len, *extra)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            after(optimizer, (), {})
    else:
        after(optimizer, (), {})
        assert [type(one) for one in bench.faults] == [ValueError]
    assert bench.left == []


def test_a_batch_and_the_end_of_the_data(bench: Bench) -> None:
    exhausted: list[Any] = []

    class Iterator:
        def __init__(self) -> None:
            self.left = 2

        def __next__(self) -> int:
            assert bench.ledger.current == DATA_WAIT
            self.left -= 1
            if self.left < 0:
                raise StopIteration("done")
            return self.left

    feed, iterator = Feed(), Iterator()
    feed.trains = True
    vars(iterator)["_hotlap_loader"] = feed
    hook = bench.make("next", Iterator.__next__, exhausted.append, bench.faults.append)
    assert [hook(iterator), hook(iterator)] == [1, 0]
    assert bench.standing.counts[0] == 3
    with pytest.raises(StopIteration, match="done") as caught:
        hook(iterator)
    assert caught.value.__context__ is None
    assert exhausted == [iterator]
    assert bench.ended == [(1, iterator)]
    assert bench.left == []


def test_nothing_is_kept_after_millions_of_calls(bench: Bench) -> None:
    host = bench.root()
    sample = Sample()
    calls: list[Callable[[], Any]] = []
    module, back = bench.module(), bench.make("backward", lambda: None)
    zero = bench.make("zero_grad", lambda optimizer: optimizer)
    fetch = bench.make("fetch", lambda fetcher: fetcher, sample)
    sample.fetcher, sample.to_skip = id(host), 1 << 40
    extra: tuple[Any, ...] = ({}, {}, lambda _: 0)
    optimizer = Optimizer()
    before, after = (bench.make(kind, len, *extra) for kind in ("step_begins", "step_ended"))
    tally = choice.Tally(4)
    read = bench.make("read", lambda tensor: tensor, lambda *_: tally, "item")

    def fails() -> None:
        raise KeyError

    def raising() -> None:
        with contextlib.suppress(KeyError):
            module(host, fails)

    def step() -> None:
        before(optimizer, (), {})
        after(optimizer, (), {})
        if len(bench.standing.kept) > 50:
            bench.standing.kept.drain()
        bench.standing.counts[0] = 1

    calls += [lambda: module(host, 1), back, lambda: zero(host), lambda: fetch(host)]
    calls += [step, raising, lambda: read(host)]

    def run(times: int) -> None:
        for _ in range(times):
            for call in calls:
                call()

    run(1000)
    gc.collect()
    counted = [sys.getrefcount(one) for one in (host, module, optimizer, None, tally, True, False)]
    blocks = sys.getallocatedblocks()
    run(150_000)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 2000
    after_all = [
        sys.getrefcount(one) for one in (host, module, optimizer, None, tally, True, False)
    ]
    assert all(abs(a - b) < 100 for a, b in zip(counted, after_all, strict=True))
    assert set(bench.left) <= {"read"}
    assert bench.standing.totals[2] > 150_000
    assert bench.ledger.current != BACKWARD
