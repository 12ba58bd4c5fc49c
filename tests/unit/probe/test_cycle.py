"""Which optimizer ends a cycle, learnt while the optimizers take turns."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence

import pytest

from hotlap.probe.cycle import Cycle, closing_optimizer


def closed(order: Iterable[int]) -> list[int]:
    """Return the places in the sequence at which a cycle was taken to end."""
    cycle = Cycle()
    return [at for at, one in enumerate(order) if cycle.closes(one)]


def steady(order: Sequence[int], length: int) -> None:
    """Assert that, when it has settled, one cycle ends per ``length`` ticks, evenly."""
    found = [at for at in closed(order) if at >= 2 * length + 8]
    gaps = {after - before for before, after in itertools.pairwise(found)}
    assert gaps == {length}, found[:20]
    assert len(found) >= (len(order) - 2 * length - 8) // length


def test_one_optimizer_closes_each_time() -> None:
    assert closed([0] * 1000) == list(range(1000))


@pytest.mark.parametrize("cycle", [(0, 1), (0, 1, 2), (0, 1, 2, 3)])
def test_equals_close_at_the_last_of_them(cycle: tuple[int, ...]) -> None:
    order = cycle * 300
    steady(order, len(cycle))
    assert closing_optimizer(order) == cycle[-1]


@pytest.mark.parametrize("critics", [2, 3, 5, 10, 25, 100])
def test_the_rarer_one_closes(critics: int) -> None:
    steady(([0] * critics + [1]) * 30, critics + 1)
    assert closing_optimizer(([0] * critics + [1]) * 30) == 1


@pytest.mark.parametrize("critics", [2, 5, 25])
def test_the_rarer_one_closes_also_where_it_opens_the_cycle(critics: int) -> None:
    steady(([0] + [1] * critics) * 30, critics + 1)


@pytest.mark.parametrize("layers", [2, 10, 100, 250])
def test_an_optimizer_for_each_layer(layers: int) -> None:
    forwards = list(range(layers))
    steady(forwards * 8, layers)
    # Numbered in the order of their first step, whichever way the layers run.
    assert closing_optimizer(forwards * 4) == layers - 1


def test_trainings_one_after_the_other_each_close() -> None:
    order = [fold for fold in range(10) for _ in range(100)]
    assert closed(order) == list(range(1000))


def test_adversarial_trainings_one_after_the_other() -> None:
    order = ([0, 0, 1] * 100) + ([2, 2, 3] * 100)
    found = closed(order)
    assert [at for at in found if 10 < at < 300] == list(range(11, 300, 3))
    assert [at for at in found if at > 310] == list(range(311, 600, 3))
    assert len(found) <= 200 + 6


def test_an_optimizer_for_every_step_closes_each_time() -> None:
    assert closed(range(3000)) == list(range(3000))


@pytest.mark.parametrize("seed", range(20))
def test_skipped_and_repeated_steps_do_not_unsettle_it(seed: int) -> None:
    """A scaler that skips on overflow, an exception that is caught, a resumed epoch."""
    generator = random.Random(seed)
    order: list[int] = []
    cycles = 0
    while cycles < 400:
        whole = [0, 0, 0, 1]
        if generator.random() < 0.03:
            del whole[generator.randrange(4)]
        if generator.random() < 0.03:
            whole.insert(generator.randrange(len(whole)), 0)
        cycles += 1 in whole
        order += whole
    late = [at for at in closed(order) if at > 100]
    assert [order[at] for at in late] == [1] * len(late)
    assert late == [at for at, one in enumerate(order) if one == 1 and at > 100]


@pytest.mark.parametrize("seed", range(20))
def test_any_order_counts_no_more_steps_than_ticks(seed: int) -> None:
    generator = random.Random(seed)
    order = [generator.randrange(4) for _ in range(2000)]
    found = closed(order)
    assert found == sorted(set(found))
    assert len(found) <= len(order)
    assert found, "somebody closes"


def test_nothing_closes_nothing() -> None:
    assert closing_optimizer([]) is None


def test_the_first_cycle_is_counted_by_what_is_known_by_then() -> None:
    """At its start a cycle of two could as well be the end of one of three."""
    found = closed([0, 1] * 10)
    assert found[:2] == [0, 1]
    assert [at for at in found if at > 4] == list(range(5, 20, 2))
