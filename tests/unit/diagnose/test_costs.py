"""Costs on one scale, regions, predictions: checked with a pencil."""

from __future__ import annotations

import pytest

from hotlap.diagnose import predict, wishes
from hotlap.diagnose.costs import base_of, costs_of
from hotlap.diagnose.regions import select
from hotlap.values.facts import WhatIf
from hotlap.values.finding import Bounds
from unit.diagnose.made import HEALTHY, HEALTHY_STEP, WALL_NS, entry, facts, loader, place, run


def test_the_base_is_the_whole_run_only_when_it_was_seen() -> None:
    summary = run(HEALTHY_STEP, phases={"start_up": 0.3})
    whole = base_of(facts(summary, *HEALTHY))
    assert whole is not None
    assert whole.whole
    assert whole.ns == WALL_NS
    part = base_of(facts(summary, *HEALTHY, whole_run=False))
    assert part is not None
    assert not part.whole
    assert part.ns == pytest.approx(0.7 * WALL_NS)


def test_start_up_costs_nothing_where_the_whole_run_is_not_known() -> None:
    started = entry("start_up", 80, 0.3, "build")
    assert not costs_of(facts(run(HEALTHY_STEP), started, whole_run=False))
    assert costs_of(facts(run(HEALTHY_STEP), started))


def test_workers_lines_share_what_was_waited_for_not_more() -> None:
    given = facts(
        run({"data_wait": 0.2}, loaders=(loader(2),)),
        entry("data_wait", 10, 0.2, state="blocked"),
        entry("fetch", 40, 1.5, "__getitem__", role="worker"),
        entry("collate", 41, 0.5, "collate", role="worker"),
        entry("idle", 42, 5.0, "loop", role="worker"),
    )
    shares = {one.place.line: one.share for one in costs_of(given)}
    assert shares[40] == pytest.approx(0.15)
    assert shares[41] == pytest.approx(0.05)
    assert 42 not in shares
    assert sum(shares.values()) == pytest.approx(0.2)


def test_unpacking_in_the_training_thread_stays_its_own() -> None:
    given = facts(
        run({"data_wait": 0.3}, loaders=(loader(2),)),
        entry("data_wait", 10, 0.2, state="blocked", leaf="select"),
        entry("data_wait", 10, 0.1, state="working", leaf="pickle.loads"),
        entry("fetch", 40, 1.0, "__getitem__", role="worker"),
    )
    own = [one for one in costs_of(given) if one.role == "trainer"]
    assert sum(one.share for one in own) == pytest.approx(0.1)


def test_hot_line_and_entry_of_a_region() -> None:
    main, call = place(90, "main"), place(50, "evaluate")
    costs = costs_of(
        facts(
            run(HEALTHY_STEP),
            entry("evaluation", 60, 0.3, "score", callers=(call, main)),
            entry("evaluation", 61, 0.1, "score", callers=(call, main)),
            entry("forward", 30, 0.4, "forward", callers=(main,)),
        )
    )
    region = select(costs, lambda one: one.phase == "evaluation")
    assert region is not None
    assert region.hot.line == 60
    assert region.entry.line == 50
    assert region.share == pytest.approx(0.4)


def test_a_cost_that_is_spread_out_is_named_by_the_line_that_leads_to_it() -> None:
    call = place(40, "__getitem__")
    lines = [entry("data_wait", 100 + i, 0.1, "decode", callers=(call,)) for i in range(6)]
    region = select(costs_of(facts(run(HEALTHY_STEP), *lines)), lambda _: True)
    assert region is not None
    assert region.hot.line == 40
    assert region.line == region.hot


@pytest.mark.parametrize(("share", "low", "high"), [(0.5, 1.53, 2.01), (0.2, 1.16, 1.26)])
def test_speed_up_by_amdahl_with_the_noise(share: float, low: float, high: float) -> None:
    gain = predict.speedup(facts(run(HEALTHY_STEP)), predict.recoverable(share))
    assert gain.low == pytest.approx(low, abs=0.01)
    assert gain.high == pytest.approx(high, abs=0.01)


def test_what_an_experiment_on_the_steps_recovers_of_the_run() -> None:
    tried = WhatIf("loader_workers", 2, 2.0, 1.8, 2.2, acted=True)
    share = predict.by_what_if(tried, steps_share=0.5)
    assert share.low == pytest.approx(0.5 * (1 - 1 / 1.8))
    assert share.high == pytest.approx(0.5 * (1 - 1 / 2.2))


def test_several_causes_add_up_but_never_to_everything() -> None:
    capped = predict.together(facts(run({})), [Bounds(0.2, 0.5), Bounds(0.2, 0.5)], most=0.5)
    assert capped.high == pytest.approx(2.0, rel=0.02)
    both = predict.together(facts(run(HEALTHY_STEP)), [Bounds(0.6, 0.8), Bounds(0.5, 0.6)])
    assert both.high is not None
    assert both.high < 60


def test_wishes_ask_for_workers_where_there_are_none_and_the_training_waits() -> None:
    given = facts(run({"data_wait": 0.6}, loaders=(loader(0),)))
    assert ("loader_workers", 2) in wishes(given)
    quiet = facts(run({"data_wait": 0.01, "forward": 0.9}, loaders=(loader(0),)))
    assert not any(name == "loader_workers" for name, _ in wishes(quiet))


def test_the_busiest_line_is_of_the_function_that_holds_most() -> None:
    shared = facts(
        run(HEALTHY_STEP, phases={"start_up": 0.3}),
        entry("start_up", 35, 0.10, "read", callers=(place(59, "<module>"),)),
        entry("start_up", 36, 0.05, "read", callers=(place(59, "<module>"),)),
        entry("start_up", 37, 0.12, "<listcomp>", callers=(place(37, "read"), place(59))),
        entry("start_up", 80, 0.03, "other"),
    )
    region = select(costs_of(shared), lambda one: one.phase == "start_up")
    assert region is not None
    assert region.hot.line == 59
    assert region.line.line == 37
    spread = facts(
        run(HEALTHY_STEP, phases={"start_up": 0.3}),
        *(entry("start_up", 40 + k, 0.1, f"part_{k}", callers=(place(9),)) for k in range(3)),
    )
    region = select(costs_of(spread), lambda one: one.phase == "start_up")
    assert region is not None
    assert region.line == region.hot
