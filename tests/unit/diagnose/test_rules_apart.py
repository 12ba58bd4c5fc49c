"""What tells one cause from another that looks like it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotlap.diagnose import judge
from hotlap.diagnose.catalogue import rule
from hotlap.values.facts import Facts, Setting, WhatIf
from hotlap.values.finding import Clear, Finding, Unknown
from hotlap.values.summary import Part
from unit.diagnose.firing import STREAM, WAITING, curve, getitem, stream_of, waiting
from unit.diagnose.made import (
    HEALTHY_STEP,
    SECOND,
    entry,
    facts,
    line,
    loader,
    operator,
    place,
    process,
    retained,
    run,
)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(retained(1.0), id="one pass a step"),
        pytest.param(retained(16.0, backward=0.3), id="no longer than usual"),
        pytest.param(retained(16.0, value=False), id="not kept"),
    ],
)
def test_a_kept_graph_is_no_cause_where_nothing_goes_through_it_again(given: Facts) -> None:
    module = rule("HL316")
    assert module is not None
    assert isinstance(module.check(given), Clear)


def test_a_long_backward_pass_is_not_laid_upon_small_operators_of_the_forward_pass() -> None:
    def judged(backward: float) -> float | None:
        module = rule("HL304")
        assert module is not None
        found = module.check(
            facts(
                run({"forward": 0.1, "backward": backward}),
                entry("forward", 33, 0.1, "forward", callers=(place(11),)),
                source={33: line(33, "h = torch.tanh(x[t] + h)", (32,), "forward")},
                operators=(operator(33, "aten::tanh", 300, 3e6),),
            )
        )
        assert isinstance(found, Finding)
        return found.recoverable_share.high

    assert judged(0.3) == judged(0.8)


@pytest.mark.parametrize(
    ("frames", "named"),
    [
        pytest.param((place(33, "forward"), place(11)), 32, id="a loop in the model"),
        pytest.param((place(33, "<listcomp>"), place(33, "forward"), place(11)), 33, id="inlined"),
        pytest.param((place(40, "forward"), place(33, "forward"), place(11)), 32, id="below it"),
    ],
)
def test_small_operators_name_the_loop_that_calls_them(frames: tuple[Any, ...], named: int) -> None:
    module = rule("HL304")
    assert module is not None
    top, *callers = frames
    given = facts(
        run(HEALTHY_STEP),
        entry("forward", top.line, 0.3, top.function, callers=tuple(callers)),
        source={
            33: line(33, "h = self.cell(x[t] + h)", (32,), "forward"),
            40: line(40, "return torch.tanh(x)", (), "forward"),
        },
        operators=(operator(top.line, "aten::tanh", 300, 3e6),),
    )
    found = module.check(given)
    assert isinstance(found, Finding)
    assert found.locations[0].line == named


def test_evaluation_with_gradients_is_named_before_its_length() -> None:
    given = facts(
        run(HEALTHY_STEP, phases={"evaluation": 0.4}),
        entry("evaluation", 48, 0.4, "forward", callers=(place(55, "validate"), place(83))),
        settings=(Setting("optimizer", "Adam", place(3)),),
    )
    (found,) = judge(given).findings
    assert (found.code, found.locations[0].line) == ("HL602", 55)


def test_the_parts_of_a_fused_layer_are_no_small_operators() -> None:
    module = rule("HL304")
    assert module is not None
    given = facts(
        run(HEALTHY_STEP),
        entry("forward", 33, 0.3, "forward", callers=(place(11),)),
        source={33: line(33, "h, state = self.lstm(x, state)", (32,), "forward")},
        operators=(operator(33, "aten::empty", 300, 2e6), operator(33, "aten::lstm", 16, 4e6 / 3)),
    )
    assert isinstance(module.check(given), Finding)
    given = facts(
        run(HEALTHY_STEP),
        entry("forward", 33, 0.3, "forward", callers=(place(11),)),
        source={33: line(33, "h, state = self.lstm(x, state)", (32,), "forward")},
        operators=(
            operator(33, "aten::empty", 300, 1e6),
            operator(33, "aten::mkldnn_rnn_layer", 16, 1.5e6),
        ),
    )
    assert isinstance(module.check(given), Clear)


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param([1200, 90, 64, 64], id="hit"),
        pytest.param([0, 60, 64, 60], id="not full"),
        pytest.param([0, 64, 64, 64], id="filled once"),
    ],
)
def test_a_cache_that_serves_is_no_cause(counts: list[int]) -> None:
    module = rule("HL116")
    assert module is not None
    given = facts(
        run({"data_wait": 0.6}),
        entry("data_wait", 40, 0.5, "load"),
        defaults={"function_caches": [["train.py", 38, "load", *counts]]},
    )
    assert isinstance(module.check(given), Clear)


def test_the_reason_outranks_what_the_lines_do() -> None:
    given = facts(
        run({"data_wait": 0.6}),
        entry("data_wait", 40, 0.5, "load", expression="np.load(path)"),
        defaults={"function_caches": [["train.py", 38, "load", 90, 1200, 64, 64]]},
    )
    assert [one.code for one in judge(given).findings] == ["HL116"]


def test_steps_that_slow_down_in_all_lines_alike_tell_of_the_machine() -> None:
    module = rule("HL601")
    assert module is not None
    given = facts(
        run(HEALTHY_STEP),
        entry("other", 22, 0.3, expression="sum(history)", over_time=(0, 0, *(9, 11, 8, 12) * 3)),
        entry("backward", 12, 0.4, over_time=(0, 0, *(19, 21, 22, 18) * 3)),
        step_series=tuple(1_000_000 + 10_000 * i + (i % 7) * 20_000 for i in range(400)),
    )
    answer = module.check(given)
    assert isinstance(answer, Unknown)
    assert "no line more than the others" in answer.because


@pytest.mark.parametrize(
    ("given", "because"),
    [
        (replace(STREAM, curve=curve(1000.0, 900.0, 1700.0)), "each worker prepares its own"),
        (stream_of(cpu_ns=36_000_000), "each worker prepares its own"),
        (replace(stream_of(64_000_000), curve=()), "was not drained alone"),
        (replace(STREAM, run=run(WAITING, loaders=(loader(2),))), "no workers share a stream"),
    ],
)
def test_workers_that_share_a_stream_repeat_nothing(given: Facts, because: str) -> None:
    module = rule("HL117")
    assert module is not None
    answer = module.check(given)
    assert isinstance(answer, (Clear, Unknown))
    assert because in answer.because


@pytest.mark.parametrize(("others", "idle"), [((0.0, 0.01), 2), ((0.5, 0.45), 0), ((), 0)])
def test_evaluation_on_one_rank_is_told_from_that_on_all(
    others: tuple[float, ...], idle: int
) -> None:
    def rank(number: int, share: float) -> Any:
        spent = {"evaluation": Part(int(share * 100 * SECOND), share)}
        return replace(process(HEALTHY_STEP, rank=number), world_size=3, phases=spent)

    trainers = tuple(rank(number, share) for number, share in enumerate((0.5, *others)))
    module = rule("HL702")
    assert module is not None
    found = module.check(
        facts(
            run(HEALTHY_STEP, phases={"evaluation": 0.5}, trainers=trainers),
            entry("evaluation", 70, 0.5, "evaluate", callers=(place(9),)),
        )
    )
    assert isinstance(found, Finding)
    assert ("shard" in found.say) is bool(idle)
    assert found.recoverable_share.low == pytest.approx(0.2 if idle else 0.3)


def test_work_in_the_forward_pass_comes_with_its_backward_pass() -> None:
    given = facts(
        run({"forward": 0.4, "backward": 0.5}),
        entry("forward", 40, 0.3, "forward", expression="torch.cat([a, b])"),
        entry("forward", 30, 0.1, "forward", leaf="torch.nn.modules.linear.Linear.forward"),
        entry("backward", 12, 0.5, leaf="torch.autograd.graph._engine_run_backward"),
        operators=(
            operator(40, "aten::cat", 1, 9e6),
            operator(12, "aten::slice", 2, 4e6, phase="backward", forward=40),
            operator(12, "aten::mm", 2, 6e6, phase="backward", forward=30),
        ),
    )
    module = rule("HL309")
    assert module is not None
    found = module.check(given)
    assert isinstance(found, Finding)
    assert found.recoverable_share.high == pytest.approx(0.3 + 0.4 * 0.5)
    assert "20 % more into its backward pass" in found.say


def test_a_main_thread_that_waits_for_another_has_no_start_up_of_its_own() -> None:
    given = facts(
        run(HEALTHY_STEP, phases={"start_up": 0.4}),
        entry("start_up", 23, 0.4, "main", expression="m.join()", leaf="threading.Thread.join"),
    )
    module = rule("HL703")
    assert module is not None
    assert isinstance(module.check(given), Clear)


def test_workers_that_were_tried_in_vain_are_not_advised() -> None:
    module = rule("HL101")
    assert module is not None
    tried = WhatIf("loader_workers", 2, 0.9, 0.8, 1.05, acted=True)
    rates = curve(100.0, 95.0, 180.0)
    advised = module.check(waiting(getitem(), curve=rates))
    assert isinstance(advised, Finding)
    assert "2 workers would share the work" in advised.say
    found = module.check(waiting(getitem(), curve=rates, what_ifs=(tried,)))
    assert isinstance(found, Finding)
    assert "2 workers were tried, and the steps were no faster" in found.say
    assert found.remedy.knobs == ()


def test_an_evaluation_that_reads_its_result_is_not_said_to_be_filled_by_that() -> None:
    def said(leaf: str) -> str:
        line_70 = entry("evaluation", 70, 0.5, "evaluate", expression="right.item()", leaf=leaf)
        module = rule("HL702")
        assert module is not None
        found = module.check(facts(run(HEALTHY_STEP, phases={"evaluation": 0.5}), line_70))
        assert isinstance(found, Finding)
        return found.say

    assert "most of it in reading tensors" in said("__main__.evaluate")
    assert "most of it" not in said("torch.nn.modules.conv.Conv2d._conv_forward")
