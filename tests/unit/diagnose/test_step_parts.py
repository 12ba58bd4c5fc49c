"""Which part of a step a cost belongs to: the loop, the model, its backward pass, the input."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.diagnose import judge
from hotlap.diagnose.catalogue import rule
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.passes import backward_of, recomputed
from hotlap.diagnose.step_lines import framework_lines, training_function
from hotlap.diagnose.wishes import wishes
from hotlap.values.facts import Facts, Measured, Setting, Storage
from hotlap.values.finding import Clear, Finding
from hotlap.values.trial import ThreadEntry
from unit.diagnose.made import (
    HEALTHY,
    HEALTHY_STEP,
    entry,
    facts,
    line,
    loader,
    operator,
    place,
    process,
    run,
)

LINEAR = "torch.nn.modules.linear.Linear.forward"
ENGINE = "torch.autograd.graph._engine_run_backward"
OWN_OPTIMIZER = (
    entry("forward", 30, 0.04, "forward", leaf=LINEAR, callers=(place(11),)),
    entry("backward", 12, 0.05, leaf=ENGINE),
    entry("optimizer", 50, 0.6, "root", expression="torch.linalg.eigh(s)", callers=(place(13),)),
    entry("optimizer", 60, 0.1, "step", callers=(place(13),)),
)


def found(code: str, given: Facts) -> Any:
    module = rule(code)
    assert module is not None
    return module.check(given)


def test_the_training_loop_is_not_the_scripts_own_optimizer() -> None:
    given = facts(run({"forward": 0.05, "backward": 0.05, "optimizer": 0.8}), *OWN_OPTIMIZER)
    assert training_function(costs_of(given)) == ("train.py", "train")


def test_an_optimizer_of_the_scripts_own_that_outweighs_the_model_is_named() -> None:
    given = facts(run({"forward": 0.05, "backward": 0.05, "optimizer": 0.8}), *OWN_OPTIMIZER)
    answer = found("HL318", given)
    assert isinstance(answer, Finding)
    assert (answer.phase, answer.locations[0].line) == ("optimizer", 50)
    assert "eigenvalues" in answer.say


def test_an_optimizer_of_torchs_is_left_to_other_rules() -> None:
    given = facts(
        run({"forward": 0.05, "backward": 0.05, "optimizer": 0.8}),
        *OWN_OPTIMIZER[:2],
        entry("optimizer", 13, 0.8, leaf="torch.optim.adam.Adam.step"),
    )
    assert isinstance(found("HL318", given), Clear)


def test_a_function_that_calls_an_optimizer_of_torchs_is_none_of_the_scripts_own() -> None:
    given = facts(
        run({"forward": 0.05, "backward": 0.05, "optimizer": 0.8}),
        *OWN_OPTIMIZER[:2],
        entry(
            "optimizer",
            40,
            0.8,
            "apply",
            leaf="torch.optim.adam.Adam.step",
            callers=(place(13),),
        ),
    )
    assert isinstance(found("HL318", given), Clear)


def penalty(own: float, forward: float) -> Facts:
    """Return facts of a step with a penalty in line 40 that costs ``own`` of the run."""
    return facts(
        run({"forward": forward, "backward": 0.5}),
        entry("forward", 30, forward, "forward", leaf=LINEAR),
        entry("other", 40, own, "penalty", expression="c @ c.t()", callers=(place(11),)),
        entry("backward", 12, 0.5, leaf=ENGINE),
        operators=(
            operator(40, "aten::mm", 1, 9e6, phase="other"),
            operator(12, "aten::mm", 2, 4e6, phase="backward", forward=40),
            operator(12, "aten::mm", 2, 1e6, phase="backward", forward=30),
        ),
    )


def test_the_backward_pass_is_divided_among_the_lines_of_the_forward_pass() -> None:
    shares = backward_of(penalty(0.2, 0.1))
    assert shares == {
        "train.py:40": pytest.approx(0.4),
        "train.py:30": pytest.approx(0.1),
    }


def test_a_penalty_counts_with_its_backward_pass() -> None:
    answer = found("HL318", penalty(0.2, 0.1))
    assert isinstance(answer, Finding)
    assert answer.recoverable_share.high == pytest.approx(0.6)
    assert answer.locations[0].line == 40


def test_a_loss_that_costs_less_than_the_model_is_none() -> None:
    assert isinstance(found("HL318", penalty(0.05, 0.4)), Clear)


def test_a_script_without_a_module_has_no_model_to_compare_with() -> None:
    assert isinstance(found("HL318", penalty(0.4, 0.0)), Clear)


def again(calls: float, ns: float) -> Facts:
    """Return facts of a backward pass with so many forward operators in it."""
    return facts(
        run({"forward": 0.3, "backward": 0.6}),
        entry("backward", 12, 0.6, leaf=ENGINE),
        operators=(
            operator(30, "aten::addmm", 4, 4e6),
            operator(30, "aten::tanh", 4, 4e6),
            operator(12, "aten::mm", 8, 9e6, phase="backward"),
            *((operator(12, "aten::addmm", calls, ns, phase="backward"),) if calls else ()),
        ),
    )


def test_what_is_computed_again_is_told_by_operators_that_only_go_forward() -> None:
    assert recomputed(again(4, 4e6)) == pytest.approx(0.5)
    assert recomputed(again(0, 0.0)) == 0.0
    assert recomputed(facts(run(HEALTHY_STEP))) is None


def test_keeping_activations_is_tried_where_something_is_computed_again() -> None:
    assert ("activation_checkpointing", False) in wishes(again(4, 4e6))
    assert ("activation_checkpointing", False) not in wishes(again(0, 0.0))
    asked = facts(
        run({"forward": 0.3}),
        settings=(Setting("activation_checkpoint", True, place(7)),),
    )
    assert ("activation_checkpointing", False) in wishes(asked)


FRAMEWORK = (
    entry("forward", 85, 0.35, "main", leaf="transformers.activations.NewGELUActivation.forward"),
    entry("backward", 85, 0.5, "main", leaf=ENGINE),
    entry("optimizer", 85, 0.05, "main", leaf="torch.optim.adam.Adam.step"),
)


def test_a_frameworks_forward_pass_is_not_laid_upon_the_line_that_calls_it() -> None:
    given = facts(
        run({"forward": 0.38, "backward": 0.52, "optimizer": 0.06}, loaders=(loader(0, line=85),)),
        *FRAMEWORK,
        operators=(
            operator(85, "aten::mul", 40, 9e6),
            operator(85, "aten::addmm", 16, 2e6),
        ),
    )
    assert framework_lines(costs_of(given)) == {"train.py:85"}
    assert isinstance(found("HL309", given), Clear)
    assert isinstance(found("HL115", given), Clear)
    assert judge(given).findings == ()


def own_input(header: int) -> Facts:
    """Return facts of a generator that sleeps, called from line ``header`` of the loop."""
    return facts(
        run({"forward": 0.2, "backward": 0.2}),
        entry("forward", 30, 0.2, "forward", leaf=LINEAR, callers=(place(11),)),
        entry("backward", 12, 0.2, leaf=ENGINE),
        entry("optimizer", 13, 0.05, leaf="torch.optim.adam.Adam.step"),
        entry("other", 66, 0.5, "__iter__", expression="time.sleep(t)", callers=(place(header),)),
        source={12: line(12, "loss.backward()", (9, 10))},
    )


def test_an_iterator_of_the_scripts_own_is_its_input() -> None:
    assert found("HL402", own_input(10)).phase == "data_wait"
    assert "next batch" in found("HL402", own_input(10)).say
    assert found("HL402", own_input(14)).phase == "other"


def test_making_the_loader_again_is_no_evaluation() -> None:
    given = facts(
        run(HEALTHY_STEP, phases={"evaluation": 0.5}, loaders=(loader(0, line=5),)),
        entry("evaluation", 50, 0.4, "read", callers=(place(5, "main"),)),
        entry("evaluation", 70, 0.1, "evaluate", callers=(place(9),)),
    )
    assert isinstance(found("HL702", given), Clear)
    assert found("HL115", given).recoverable_share.high == pytest.approx(0.4)


def test_accumulation_is_no_loop_of_backward_passes_over_one_forward_pass() -> None:
    def given(forwards: float) -> Facts:
        return facts(
            run({"forward": 0.2, "backward": 0.6}),
            entry("backward", 12, 0.6, leaf=ENGINE),
            entry("optimizer", 15, 0.05, leaf="torch.optim.adam.Adam.step"),
            source={
                12: line(12, "loss.backward()", (8, 10)),
                15: line(15, "optimizer.step()", (8,)),
            },
            counts={"backwards_per_step": 8.0, "forwards_per_step": forwards},
        )

    assert isinstance(found("HL320", given(8.0)), Clear)
    assert isinstance(found("HL320", given(1.0)), Finding)


def test_passes_are_beside_the_loop_only_where_the_loop_is_known() -> None:
    split = facts(
        run({"forward": 0.4, "backward": 0.4}),
        entry("forward", 30, 0.3, "main", expression="model(x)"),
        entry("backward", 12, 0.4, "step", leaf=ENGINE, callers=(place(31, "main"),)),
        entry("optimizer", 13, 0.1, "step", callers=(place(31, "main"),)),
    )
    assert isinstance(found("HL321", split), Clear)


def test_a_sleep_after_an_error_is_the_reason_of_a_wait() -> None:
    def given(name: str) -> Facts:
        return facts(
            run({"data_wait": 0.6}, loaders=(loader(0),)),
            entry("data_wait", 43, 0.5, "call", state="blocked", expression="time.sleep(pause)"),
            settings=(Setting(name, "pause", place(43, "call")),),
        )

    assert found("HL102", given("sleep_after_error")).reason
    assert "tried again" in found("HL102", given("sleep_after_error")).say
    assert not found("HL102", given("sleep")).reason


def test_what_is_written_in_evaluation_mode_is_saving() -> None:
    def given(text: str) -> Facts:
        return facts(
            run(HEALTHY_STEP, phases={"evaluation": 0.5}),
            *HEALTHY,
            entry("evaluation", 53, 0.45, "save", expression=text, callers=(place(77, "main"),)),
        )

    saving = found("HL701", given("json.dump(weights, file)"))
    assert isinstance(saving, Finding)
    assert saving.locations[0].line == 53
    assert "binary" in saving.say
    assert isinstance(found("HL702", given("json.dump(weights, file)")), Clear)
    assert isinstance(found("HL701", given("json.load(file)")), Clear)
    assert isinstance(found("HL702", given("json.load(file)")), Finding)


def test_buffers_that_ddp_sends_are_named_before_collectives_in_general() -> None:
    leaf = "torch.nn.parallel.distributed.DistributedDataParallel._distributed_broadcast_coalesced"
    ranks = tuple(process({"forward": 0.6}, rank=k) for k in (0, 1))
    sent = facts(
        run({"forward": 0.6}, trainers=ranks),
        entry("forward", 16, 0.5, state="blocked", expression="model(x)", leaf=leaf),
    )
    assert judge(sent).findings[0].code == "HL504"
    alone = facts(run({"forward": 0.6}), entry("forward", 16, 0.5, leaf=leaf))
    assert isinstance(found("HL504", alone), Clear)


@pytest.mark.parametrize(
    ("state", "cpu_ns", "is_said"),
    [
        ("blocked", 60, True),
        ("runqueue", 60, True),
        ("working", 60, False),
        ("blocked", 10, False),
    ],
)
def test_a_thread_is_to_blame_only_where_it_works_and_the_training_waits(
    state: str, cpu_ns: int, is_said: bool
) -> None:
    given = facts(
        run({"forward": 0.6}),
        entry("forward", 30, 0.6, "forward", state=state),
        threads=(ThreadEntry("t", "transformers.x.peak_monitor_func", None, cpu_ns, 100),),
        settings=(Setting("skip_memory_metrics", False, place(84)),),
    )
    answer = found("HL404", given)
    assert isinstance(answer, Finding) == is_said
    if is_said:
        assert answer.locations[0].line == 84
        assert "skip_memory_metrics" in answer.say


def test_operators_of_a_compiled_graph_are_no_mode() -> None:
    graph = facts(
        run({"forward": 0.4, "backward": 0.5}),
        entry("forward", 30, 0.4, leaf="torch._ops.OpOverload.__call__"),
        entry("backward", 12, 0.5, leaf="torch._ops.OpOverload.__call__"),
    )
    assert isinstance(found("HL324", graph), Clear)
    leaf = "torch._subclasses.functional_tensor.FunctionalTensorMode.__torch_dispatch__"
    traced = facts(
        run({"forward": 0.4, "backward": 0.5}),
        entry("forward", 30, 0.4, leaf="torch._ops.OpOverload.__call__"),
        entry("forward", 31, 0.05, leaf=leaf),
    )
    assert isinstance(found("HL324", traced), Clear)


def test_who_sleeps_or_waits_for_a_queue_does_not_wait_for_the_interpreter() -> None:
    given = facts(
        run({"other": 0.9}),
        entry("other", 30, 0.4, state="blocked", expression="time.sleep(0.01)"),
        entry("other", 31, 0.4, state="blocked", leaf="queue.Queue.get"),
        threads=(ThreadEntry("t", "__main__.feed", place(4), 60, 100),),
    )
    assert isinstance(found("HL404", given), Clear)
    lets_go = facts(
        run({"forward": 0.9}),
        entry("forward", 30, 0.8, state="blocked"),
        threads=(ThreadEntry("t", "numpy.linalg._linalg.svd", place(4), 60, 100),),
    )
    assert isinstance(found("HL404", lets_go), Clear)


@pytest.mark.parametrize(("leaf", "beside"), [("__main__.SAM.step", 0.25), ("torch.optim.x", 0.1)])
def test_passes_are_made_twice_only_by_an_optimizer_of_torchs_and_at_like_cost(
    leaf: str, beside: float
) -> None:
    """SAM moves the weights between the two; an LBFGS makes many passes inside of its step."""
    given = facts(
        run({"backward": 0.5}),
        entry("backward", 63, beside, "closure", callers=(place(66),)),
        entry("backward", 63, 0.25, "closure", callers=(place(67),)),
        entry("optimizer", 67, 0.05, leaf=leaf),
    )
    assert isinstance(found("HL325", given), Clear)


def test_cold_and_warm_samples_tell_storage_from_other_waits() -> None:
    def given(warm_blocked_ns: int, cold_blocked_ns: int = 80) -> str:
        seen = Storage(10, 10, 1 << 20, 100, 90, cold_blocked_ns, warm_blocked_ns, None)
        made = facts(
            run({"data_wait": 0.6}, loaders=(loader(0),)),
            entry("data_wait", 43, 0.5, "call", state="blocked", expression="fetch(i)"),
            storage=Measured(seen, "made"),
        )
        return str(found("HL102", made).say)

    assert "waiting for storage" in given(8)
    assert "not for storage" in given(72)
    assert "waiting (storage, a lock, or a sleep)" in given(50)
    assert "waiting (storage, a lock, or a sleep)" in given(9, cold_blocked_ns=10)


def test_an_agent_that_acts_between_its_updates_runs_its_model_for_a_reason() -> None:
    acting = facts(
        run({"forward": 0.5, "backward": 0.3}),
        entry(
            "forward", 30, 0.2, "act", expression="self.net(state)", callers=(place(90, "main"),)
        ),
        entry("forward", 31, 0.25, "update", callers=(place(91, "main"),)),
        entry("backward", 12, 0.3, "update", leaf=ENGINE, callers=(place(91, "main"),)),
        entry("optimizer", 13, 0.1, "update", callers=(place(91, "main"),)),
    )
    assert isinstance(found("HL321", acting), Clear)
