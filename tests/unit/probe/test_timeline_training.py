"""What a step is made of, for each way in which people train. See docs/concepts/steps.md."""

from __future__ import annotations

import gc

import pytest

from unit.probe.script import Net, Optimizer, Script

STEP = {"forward": 30, "backward": 50, "optimizer": 9, "other": 2}
FIRST = {**STEP, "optimizer": 8}
"""The first step ends with ``step()``: its ``zero_grad`` belongs to the second."""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    return Script(monkeypatch)


def test_plain_steps_and_the_edge_of_an_epoch(script: Script) -> None:
    script.host(1000)
    net, optimizer, loader = Net(), Optimizer(), script.loader()
    for _ in range(2):
        for _ in loader.open(7).batches(2, 5):
            script.train(net, optimizer)
        script.host(11)
    script.host(100)
    script.end()
    assert script.before == {"other": 1000, "epoch_edge": 7}
    # Hearing that there is no more (5), the host (11), the next iterator (7).
    edge = {**STEP, "data_wait": 5, "epoch_edge": 23}
    wait = {"data_wait": 5}
    assert script.ticks == [{**FIRST, **wait}, {**STEP, **wait}, edge, {**STEP, **wait}]
    assert script.after == {"optimizer": 1, "other": 5 + 11 + 100}, "no epoch follows the last one"
    assert script.counts == [[1, 1, 1]] * 4
    assert set(script.rules) == {"optimizer"}
    assert [raw[6] for raw in script.journal.raw] == [True, False, True, False]
    assert loader.role == "training"


def test_accumulation_is_one_step_of_many_batches(script: Script) -> None:
    net, optimizer, batches = Net(), Optimizer(), script.loader().open()
    for index in range(12):
        batches.batch(5)
        script.forward(net, 30)
        script.backward(50)
        if index % 4 == 3:
            script.step(optimizer, 8)
    script.end()
    # Until an optimizer has stepped, batches count: the reader adds those ticks to the step.
    assert script.rules == ["loader"] * 3 + ["optimizer"] * 3
    whole = {"data_wait": 20, "forward": 120, "backward": 200, "optimizer": 8}
    assert script.ticks[4:] == [whole, whole]
    assert script.counts[4:] == [[4, 4, 4]] * 2
    assert {k: sum(t.get(k, 0) for t in script.ticks[:4]) for k in whole} == whole


def test_adversarial_training_is_never_evaluation(script: Script) -> None:
    made, judge = Net(), Net()
    made_by, judged_by = Optimizer(), Optimizer()
    batches = script.loader().open()
    for _ in range(3):
        batches.batch(5)
        script.mode(judge, True)
        with script.no_grad():
            script.forward(made, 7)
        script.forward(judge, 11)
        script.backward(13)
        script.step(judged_by, 1)
        script.mode(judge, False)  # its dropout is off while the other one learns
        script.forward(made, 17)
        script.forward(judge, 19)
        script.backward(23)
        script.step(made_by, 2)
    script.end()
    first = {"data_wait": 5, "forward": 18, "backward": 13, "optimizer": 1}
    second = {"forward": 36, "backward": 23, "optimizer": 2}
    assert script.ticks == [first, second] * 3
    assert [raw[2] for raw in script.journal.raw] == [0, 1] * 3


def test_a_closure_runs_inside_the_optimizer_and_is_not_its_time(script: Script) -> None:
    net, optimizer, batches = Net(), Optimizer(), script.loader().open()

    def closure() -> None:
        for _ in range(3):
            script.zero_grad(1)
            script.forward(net, 30)
            script.backward(50)

    for _ in range(2):
        batches.batch(5)
        script.step(optimizer, 8, closure)
    script.end()
    step = {"data_wait": 5, "forward": 90, "backward": 150, "optimizer": 11}
    assert script.ticks == [step, step]
    assert script.counts == [[1, 3, 3]] * 2


def test_a_teacher_beside_a_loader_is_part_of_the_forward(script: Script) -> None:
    teacher, net, optimizer = Net(training=False), Net(), Optimizer()
    batches = script.loader().open()
    for _ in range(3):
        batches.batch(5)
        with script.no_grad():
            script.forward(teacher, 7)
        script.train(net, optimizer)
    script.end()
    assert script.evaluation == 0
    assert script.ticks[1:] == [{**STEP, "data_wait": 5, "forward": 37}] * 2


def test_a_teacher_without_a_loader_is_known_after_two_steps(script: Script) -> None:
    teacher, net, optimizer = Net(training=False), Net(), Optimizer()
    for _ in range(6):
        script.host(5)
        with script.no_grad():
            script.forward(teacher, 7)
        script.train(net, optimizer)
    script.end()
    assert script.ticks[-4:] == [{**STEP, "forward": 37, "other": 7}] * 4
    assert script.evaluation <= 14, "before, it cannot be told from an evaluation"


def test_a_model_that_trains_in_evaluation_mode(script: Script) -> None:
    """Frozen statistics, for instance: the mode says nothing, the backward pass does."""
    net, optimizer, loader = Net(training=False), Optimizer(), script.loader()
    for _ in range(2):
        for _ in loader.open(7).batches(2, 5):
            script.mode(net, False)
            script.train(net, optimizer)
    script.end()
    assert script.evaluation == 0
    assert script.ticks[1] == {**STEP, "data_wait": 5}
    assert script.ticks[2] == {**STEP, "data_wait": 5, "epoch_edge": 12}


def test_batches_that_are_fetched_ahead(script: Script) -> None:
    net, optimizer, batches = Net(), Optimizer(), script.loader().open(7)
    batches.batch(5)
    batches.batch(5)
    for _ in range(3):
        script.forward(net, 30)
        script.backward(50)
        batches.batch(5)
        script.step(optimizer, 8)
    script.end()
    step = {"data_wait": 5, "forward": 30, "backward": 50, "optimizer": 8}
    assert script.ticks[-2:] == [step, step]
    assert script.before == {"epoch_edge": 7}
    assert sum(counts[0] for counts in script.counts) == 5


def test_several_loaders_feed_one_step(script: Script) -> None:
    net, optimizer = Net(), Optimizer()
    loaders = [script.loader(), script.loader()]
    one, two = (loader.open(7) for loader in loaders)
    for _ in range(3):
        one.batch(3)
        two.batch(4)
        script.train(net, optimizer)
    script.end()
    assert script.before == {"epoch_edge": 14}
    assert script.ticks == [{**FIRST, "data_wait": 7}, *[{**STEP, "data_wait": 7}] * 2]
    assert [loader.role for loader in loaders] == ["training", "training"]
    assert script.evaluation == 0


def test_trainings_one_after_the_other(script: Script) -> None:
    for _ in range(2):
        net, optimizer, training, held_out = Net(), Optimizer(), script.loader(), script.loader()
        script.host(1000)
        for _ in training.open(7).batches(2, 5):
            script.train(net, optimizer)
        with script.no_grad():
            for _ in held_out.open(70).batches(1, 500):
                script.forward(net, 3000)
        script.host(10_000)
    script.end()
    assert script.before == {"other": 1000, "epoch_edge": 7}
    evaluation = 70 + 500 + 3000 + 500 + 10_000
    assert script.ticks[2]["evaluation"] == evaluation
    assert script.ticks[2]["epoch_edge"] == 5 + 1000 + 7
    assert script.ticks[2]["other"] == 2
    assert script.after == {"optimizer": 1, "other": 5, "evaluation": evaluation}
    assert [raw[2] for raw in script.journal.raw] == [0, 0, 1, 1]


def test_without_an_optimizer_batches_count(script: Script) -> None:
    net, loader = Net(), script.loader()
    for _ in loader.open(7).batches(3, 5):
        script.forward(net, 30)
        script.backward(50)
        script.host(3)
    script.end()
    step = {"data_wait": 5, "forward": 30, "backward": 50, "other": 3}
    assert script.ticks == [step] * 3
    assert set(script.rules) == {"loader"}


def test_without_loader_and_optimizer_backward_passes_count(script: Script) -> None:
    net = Net()
    for _ in range(3):
        script.forward(net, 30)
        script.backward(50)
        script.host(3)
    script.end()
    step = {"forward": 30, "backward": 50}
    assert script.ticks == [step, {**step, "other": 3}, {**step, "other": 3}]
    assert set(script.rules) == {"backward"}


def test_a_mark_in_the_code_beats_everything(script: Script) -> None:
    net, optimizer, batches = Net(), Optimizer(), script.loader().open()
    for _ in range(4):
        for _ in range(2):
            script.train(net, optimizer, lambda: batches.batch(5))
        script.host(3)
        script.mark()
    script.end()
    assert script.rules[-3:] == ["explicit"] * 3
    step = {"data_wait": 10, "forward": 60, "backward": 100, "optimizer": 18, "other": 7}
    assert script.ticks[-3:] == [step] * 3


def test_a_checkpoint_inside_a_step_is_carved_out(script: Script) -> None:
    net, optimizer, batches = Net(), Optimizer(), script.loader().open()
    for _ in range(3):
        script.train(net, optimizer, lambda: batches.batch(5))
        script.save(1000)
    script.end()
    assert script.ticks[1] == {**STEP, "data_wait": 5, "checkpoint": 1000}


def test_checkpointed_activations_are_part_of_the_backward(script: Script) -> None:
    net, optimizer, batches = Net(), Optimizer(), script.loader().open()
    for _ in range(2):
        batches.batch(5)
        script.forward(net, 30)
        script.backward(50, inside=lambda: script.forward(net, 20))
        script.step(optimizer, 8)
    script.end()
    assert script.ticks[1] == {"data_wait": 5, "forward": 30, "backward": 70, "optimizer": 8}
    assert script.counts[1] == [1, 1, 1]


# -- the beginning of the first step --------------------------------------------------------------


@pytest.mark.parametrize("grad", [True, False])
def test_a_look_at_a_batch_before_training_is_start_up(script: Script, grad: bool) -> None:
    net, optimizer, loader = Net(), Optimizer(), script.loader()
    loader.open(7).batch(100)
    script.host(1000)
    script.grad = grad
    script.forward(net, 10_000)
    script.grad = True
    script.host(100_000)
    batches = loader.open(7)
    for _ in range(2):
        script.train(net, optimizer, lambda: batches.batch(5))
    script.end()
    assert script.before == {
        "data_wait": 100,
        "forward": 10_000,
        "epoch_edge": 14,
        "other": 101_000,
    }
    assert script.ticks == [{**FIRST, "data_wait": 5}, {**STEP, "data_wait": 5}]
    assert script.counts == [[1, 1, 1]] * 2


def test_a_trial_pass_before_training_is_start_up(script: Script) -> None:
    """A summary of the layers, a count of operations."""
    net, optimizer = Net(), Optimizer()
    script.forward(net, 10_000)
    script.host(100_000)
    batches = script.loader().open(7)
    script.train(net, optimizer, lambda: batches.batch(5))
    script.end()
    assert script.before == {"forward": 10_000, "other": 100_000, "epoch_edge": 7}
    assert script.ticks == [{**FIRST, "data_wait": 5}]


def test_without_a_loader_the_first_step_begins_at_its_forward_pass(script: Script) -> None:
    net, optimizer = Net(), Optimizer()
    script.host(1000)  # imports, or the first batch: it cannot be told
    for _ in range(2):
        script.train(net, optimizer)
    script.end()
    assert script.before == {"other": 1000}
    merged = {k: sum(t.get(k, 0) for t in script.ticks[:2]) for k in FIRST}
    assert merged == FIRST


def test_the_cpu_time_of_the_first_step_begins_with_it(script: Script) -> None:
    script.host(1_000_000)
    net, optimizer, batches = Net(), Optimizer(), script.loader().open()
    script.train(net, optimizer, lambda: batches.batch(5))
    first = script.journal.first
    assert first is not None
    # The clock of the test stands for both clocks: CPU time is wall time.
    assert script.journal._base[5] == first[0]
    assert script.journal.raw[0][5] - script.journal._base[5] == sum(script.ticks[0].values())


def test_the_cpu_time_of_another_thread_is_not_taken_for_this_ones(script: Script) -> None:
    """The main thread loads and looks, a thread of the script's own trains."""
    net, optimizer, batches = Net(), Optimizer(), script.loader().open()
    batches.batch(5)
    trains_elsewhere = script.ledger.thread
    script.ledger.thread = trains_elsewhere + 1  # from here on: what a switch looks like
    script.timeline.tick(3, 0)
    del net, optimizer
    assert script.journal.raw[0][5] - script.journal._base[5] == 0


def test_a_model_that_is_gone_is_forgotten(script: Script) -> None:
    optimizer = Optimizer()
    net = Net(training=False)
    script.train(net, optimizer)
    assert script.timeline.roots
    del net
    gc.collect()
    assert not script.timeline.roots
    assert not script.timeline._trains_in_eval, "the next object at this address is another one"
