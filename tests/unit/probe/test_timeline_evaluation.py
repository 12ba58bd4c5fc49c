"""What evaluation is, however a script evaluates. See docs/concepts/steps.md."""

from __future__ import annotations

import pytest

from unit.probe.script import Net, Optimizer, Script

STEP = {"data_wait": 5, "forward": 30, "backward": 50, "optimizer": 9, "other": 2}
EVALUATION = 70 + 2 * (500 + 3000) + 500
"""An iterator (70), two batches (500) and passes (3000), and the end of the data (500)."""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    return Script(monkeypatch)


class Loop:
    """A script that trains in epochs of two steps and evaluates in some way."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.net = Net()
        self.optimizer = Optimizer()
        self.training = script.loader()
        self.held_out = script.loader()

    def epoch(self) -> None:
        for _ in self.training.open(7).batches(2, 5):
            self.script.train(self.net, self.optimizer)

    def evaluate(self, mode: bool = True, grad: bool = False, net: Net | None = None) -> None:
        if mode:
            self.script.mode(net or self.net, False)
        self.script.grad = grad
        for _ in self.held_out.open(70).batches(2, 500):
            self.script.forward(net or self.net, 3000)
        self.script.grad = True


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("back", ["at once", "next epoch"])
def test_evaluation_between_epochs(script: Script, mode: bool, grad: bool, back: str) -> None:
    loop = Loop(script)
    for _ in range(3):
        script.mode(loop.net, True)
        loop.epoch()
        loop.evaluate(mode, grad)
        if back == "at once":
            script.mode(loop.net, True)
    script.end()
    assert script.ticks[1] == STEP
    for tick in (script.ticks[2], script.ticks[4]):
        assert tick == {**STEP, "evaluation": EVALUATION, "epoch_edge": 5 + 7}
    assert script.evaluation == 3 * EVALUATION
    assert [raw[6] for raw in script.journal.raw] == [True, False] * 3
    assert script.after == {"optimizer": 1, "other": 5, "evaluation": EVALUATION}
    assert (loop.training.role, loop.held_out.role) == ("training", "evaluation")


def test_a_script_that_never_returns_to_training_mode(script: Script) -> None:
    """A common mistake: ``eval()`` without ``train()`` after it. The steps stay whole."""
    loop = Loop(script)
    for _ in range(3):
        loop.epoch()
        loop.evaluate()
    script.end()
    for tick in (script.ticks[2], script.ticks[4]):
        assert tick == {**STEP, "evaluation": EVALUATION, "epoch_edge": 5 + 7}
    assert script.counts == [[1, 1, 1]] * 6
    assert [raw[6] for raw in script.journal.raw] == [True, False] * 3


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_evaluation_in_the_middle_of_an_epoch(script: Script, mode: bool, grad: bool) -> None:
    loop = Loop(script)
    batches = loop.training.open(7)
    for index in range(4):
        script.train(loop.net, loop.optimizer, lambda: batches.batch(5))
        if index % 2:
            script.host(1000)
            loop.evaluate(mode, grad)
            if mode:
                script.mode(loop.net, True)
            script.host(10_000)
    script.end()
    # What the script does after it counts as evaluation until something says that it is over.
    other, more = (11_002, 0) if mode else (1002, 10_000)
    assert script.ticks[2] == {**STEP, "other": other, "evaluation": EVALUATION + more}
    assert script.ticks[3] == STEP


def test_checkpoints_inside_an_evaluation_stay_checkpoints(script: Script) -> None:
    loop = Loop(script)
    for _ in range(2):
        loop.epoch()
        script.mode(loop.net, False)
        with script.no_grad():
            for _ in loop.held_out.open(70).batches(2, 500):
                script.forward(loop.net, 3000)
                script.save(100_000)
        script.mode(loop.net, True)
    script.end()
    extra = {"evaluation": EVALUATION, "checkpoint": 200_000, "epoch_edge": 5 + 7}
    assert script.ticks[2] == {**STEP, **extra}


def test_evaluation_over_the_training_data(script: Script) -> None:
    loop = Loop(script)
    for _ in range(2):
        script.mode(loop.net, True)
        loop.epoch()
        script.host(11)
        script.mode(loop.net, False)
        with script.no_grad():
            for _ in loop.training.open(70).batches(2, 500):
                script.forward(loop.net, 3000)
        script.host(10_000)
    script.end()
    # The end of the data and the host after it are the edge of the epoch, of no step.
    tick = script.ticks[2]
    assert tick == {**STEP, "evaluation": EVALUATION - 500, "epoch_edge": 5 + 11 + 500 + 10_000 + 7}
    assert loop.training.role == "training"


def test_a_check_before_training(script: Script) -> None:
    loop = Loop(script)
    script.host(100)
    script.mode(loop.net, False)
    with script.no_grad():
        batches = loop.held_out.open(40)
        for _ in range(2):
            batches.batch(500)
            script.forward(loop.net, 3000)
    script.mode(loop.net, True)
    script.host(1000)
    loop.epoch()
    script.end()
    assert script.before == {"other": 1100, "evaluation": 7040, "epoch_edge": 7}
    assert script.ticks[0] == {**STEP, "optimizer": 8}
    assert loop.held_out.role == "evaluation"


def test_evaluation_without_any_loader(script: Script) -> None:
    net, optimizer = Net(), Optimizer()
    for index in range(5):
        if index % 2 == 0:
            script.mode(net, False)
            with script.no_grad():
                for _ in range(3):
                    script.host(500)
                    script.forward(net, 3000)
            script.mode(net, True)
        script.host(3)
        script.train(net, optimizer)
    script.end()
    # Before the first step nothing tells that this model will train: the host time before the
    # first pass is not counted.
    assert script.before["evaluation"] == 3 * 3500 - 500
    plain = {"forward": 30, "backward": 50, "optimizer": 9, "other": 5}
    assert (
        script.ticks[2:]
        == [
            plain,
            {**plain, "evaluation": 3 * 3500},
            plain,
            {**plain, "evaluation": 3 * 3500},
        ][: len(script.ticks) - 2]
    )
    assert script.evaluation == 9 * 3500 - 500


def test_a_copy_of_the_model_may_be_what_is_evaluated(script: Script) -> None:
    """A moving average of the weights: a model that never trains."""
    loop = Loop(script)
    average = Net(training=False)
    for _ in range(2):
        loop.epoch()
        loop.evaluate(net=average)
    script.end()
    assert script.ticks[2] == {**STEP, "evaluation": EVALUATION, "epoch_edge": 5 + 7}


def test_inference_only_has_no_step(script: Script) -> None:
    net, loader = Net(), script.loader()
    script.mode(net, False)
    with script.no_grad():
        for _ in loader.open(7).batches(3, 5):
            script.forward(net, 30)
    script.end()
    assert script.ticks == []
    assert script.after == {"evaluation": 7 + 3 * 35 + 5}
    assert loader.role == "evaluation"


def test_a_pass_over_data_without_a_model_is_no_evaluation(script: Script) -> None:
    """Statistics of the data, for instance. Its waits count to the step that follows."""
    loop = Loop(script)
    loop.epoch()
    for _ in loop.held_out.open(70).batches(2, 500):
        script.host(3000)
    loop.epoch()
    script.end()
    assert script.evaluation == 0
    tick = script.ticks[2]
    assert tick == {**STEP, "data_wait": 1005, "epoch_edge": 5 + 70 + 6000 + 500 + 7}


# -- what cannot be told apart: written down, so that a change is seen ----------------------------


def test_accuracy_on_the_training_data_in_training_mode_counts_as_the_next_step(
    script: Script,
) -> None:
    loop = Loop(script)
    loop.epoch()
    with script.no_grad():
        for _ in loop.training.open(70).batches(2, 500):
            script.forward(loop.net, 3000)
    loop.epoch()
    script.end()
    assert script.evaluation == 0
    assert script.ticks[2]["forward"] == 6030


def test_gradients_and_evaluation_mode_throughout_count_as_training(script: Script) -> None:
    """Neither ``no_grad`` nor ``train()`` again: by all that is seen, the model trains."""
    loop = Loop(script)
    for _ in range(2):
        loop.epoch()
        loop.evaluate(grad=True)
    script.end()
    assert "evaluation" not in script.ticks[2]
    assert script.ticks[2]["forward"] == 6030
