"""The device's clock against a simulated device: what it tells, and that it never waits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from hotlap.probe import device_reasons as why
from hotlap.probe.ledger import EVALUATION
from hotlap.values.record import DevicePhase
from unit.probe.device_fakes import US, FakeCuda, Loop, Model, Optimizer, fake_torch, parameter


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


@pytest.fixture
def loop(tmp_path: Path, cuda: FakeCuda) -> Loop:
    return Loop(tmp_path, cuda)


# -- what the times are ------------------------------------------------------------------------


def test_a_busy_device_is_told_by_its_own_work(loop: Loop) -> None:
    """The host runs ahead: phases are what their kernels take, and there is nothing between."""
    for _ in range(60):
        loop.step()
    loop.catch_up()
    assert loop.per_step() == {"forward": 300, "backward": 600, "optimizer": 100, "other": 0}
    assert not loop.faults


def test_a_starved_device_is_told_by_the_host(loop: Loop, cuda: FakeCuda) -> None:
    """The device waits for the host: phases take as long as the host takes to send them."""
    for _ in range(60):
        loop.forward(400 * US, 10 * US)
        loop.backward(500 * US, 10 * US)
        loop.update(200 * US, 10 * US)
        cuda.now += 250 * US
    loop.catch_up()
    assert loop.per_step() == {"forward": 400, "backward": 500, "optimizer": 200, "other": 250}


def test_the_phases_add_up_to_the_period_of_the_loop(loop: Loop, cuda: FakeCuda) -> None:
    for _ in range(60):
        loop.copy(3 * US, 40 * US)
        loop.work(5 * US, 7 * US)  # a kernel outside of all phases: the loss, say
        loop.forward(10 * US, 30 * US)
        loop.backward(200 * US, 60 * US)
        loop.update()
    begun = cuda.streams[0].free_at
    loop.copy(3 * US, 40 * US)
    loop.work(5 * US, 7 * US)
    loop.forward(10 * US, 30 * US)
    loop.backward(200 * US, 60 * US)
    loop.update()
    period = cuda.streams[0].free_at - begun
    loop.catch_up()
    assert sum(loop.per_step().values()) * US == period


def test_copies_that_cross_and_copies_that_do_not(loop: Loop) -> None:
    for _ in range(60):
        loop.copy(device_ns=70 * US)
        loop.copy(device_ns=20 * US, moved=False)
        loop.step()
    loop.catch_up()
    told = loop.per_step()
    assert told == {
        "transfer": 70, "forward": 300, "backward": 600, "optimizer": 100, "other": 20,
    }  # fmt: skip


def test_a_copy_that_opens_a_step_and_crosses_nothing(loop: Loop) -> None:
    for _ in range(60):
        loop.copy(device_ns=20 * US, moved=False)
        loop.step()
    loop.catch_up()
    assert loop.per_step()["other"] == 20
    assert "transfer" not in loop.per_step()


def test_a_closure_is_taken_out_of_its_optimizer(loop: Loop) -> None:
    """LBFGS and Lightning: forward and backward run inside the optimizer's step."""
    for _ in range(60):
        with loop.phase("optimizer_step", loop.optimizer):
            loop.work(US, 10 * US)
            loop.forward()
            loop.backward()
            loop.work(US, 90 * US)
    loop.catch_up()
    assert loop.per_step() == {"forward": 300, "backward": 600, "optimizer": 100, "other": 0}


def test_a_wrapped_optimizer_is_one(loop: Loop) -> None:
    inner = Optimizer()
    for _ in range(60):
        loop.forward()
        loop.backward()
        with loop.phase("optimizer_step", loop.optimizer):
            loop.update(optimizer=inner)
    loop.catch_up()
    assert loop.per_step() == {"forward": 300, "backward": 600, "optimizer": 100, "other": 0}


def test_an_optimizer_whose_step_calls_its_base_is_one(loop: Loop) -> None:
    """torch hooks both; the site keeps one token per optimizer, the later one."""
    begin, end = loop.hub.channel("optimizer_step").ends()
    for _ in range(60):
        loop.forward()
        loop.backward()
        begin(loop.optimizer)
        loop.work(US, 40 * US)
        token = begin(loop.optimizer)
        loop.work(US, 60 * US)
        end(token, loop.optimizer)
        end(0, loop.optimizer)
    loop.catch_up()
    assert loop.per_step() == {"forward": 300, "backward": 600, "optimizer": 100, "other": 0}


def test_recomputation_is_part_of_the_backward_pass(loop: Loop) -> None:
    """Activation checkpointing calls layers again while gradients are computed."""
    for _ in range(60):
        loop.forward()
        with loop.phase("backward"):
            loop.work(US, 250 * US)
            loop.forward(device_ns=350 * US)
        loop.update()
    loop.catch_up()
    assert loop.per_step() == {"forward": 300, "backward": 600, "optimizer": 100, "other": 0}


def test_collectives_of_the_script(loop: Loop) -> None:
    for _ in range(60):
        loop.step()
        with loop.phase("collective", "all_reduce"):
            loop.work(US, 80 * US)
    loop.catch_up()
    assert loop.per_step()["communication"] == 80


def test_accumulation_is_one_step(loop: Loop) -> None:
    for _ in range(60):
        for _ in range(4):
            loop.forward()
            loop.backward()
        loop.update()
    loop.catch_up()
    assert loop.per_step() == {"forward": 1200, "backward": 2400, "optimizer": 100, "other": 0}


@pytest.mark.parametrize("critics", [1, 3])
def test_a_cycle_of_optimizers_is_one_step(loop: Loop, critics: int) -> None:
    critic = Optimizer()
    for _ in range(80):
        for _ in range(critics):
            loop.forward(device_ns=10 * US)
            loop.backward(device_ns=20 * US)
            loop.update(device_ns=5 * US, optimizer=critic)
        loop.step()
    loop.catch_up()
    assert loop.per_step() == {
        "forward": 300 + 10 * critics,
        "backward": 600 + 20 * critics,
        "optimizer": 100 + 5 * critics,
        "other": 0,
    }


def test_without_an_optimizer_backward_passes_end_steps(loop: Loop) -> None:
    for _ in range(60):
        loop.forward()
        loop.backward()
        loop.work(US, 30 * US)
    loop.catch_up()
    assert loop.per_step() == {"forward": 300, "backward": 600, "other": 30}


def test_evaluation_is_no_part_of_a_step(loop: Loop) -> None:
    for number in range(200):
        loop.step()
        if number % 7 == 0:
            loop.timeline.mode_changes(loop.model, False)
            loop.model.training = False
            with torch.no_grad():
                loop.forward(device_ns=5000 * US)
            loop.model.training = True
            loop.timeline.mode_changes(loop.model, True)
    loop.catch_up()
    assert loop.timeline.main[EVALUATION] > 0
    assert loop.clock.dropped > 0
    assert loop.per_step() == {"forward": 300, "backward": 600, "optimizer": 100, "other": 0}


# -- what is never done ------------------------------------------------------------------------


def test_nothing_is_asked_before_cuda_is_initialised(loop: Loop, cuda: FakeCuda) -> None:
    cuda.initialized = False
    for _ in range(500):
        loop.step()
    assert not cuda.calls
    assert loop.written("fact")[-1]["device_clock"] == why.NOT_USED
    assert not loop.written("devc")


def test_cuda_that_is_initialised_late_is_found(loop: Loop, cuda: FakeCuda) -> None:
    cuda.initialized = False
    for _ in range(100):
        loop.step()
    cuda.initialized = True
    for _ in range(200):
        loop.step()
    loop.catch_up()
    assert loop.per_step()["forward"] == 300


def test_a_graph_that_is_captured_is_left_alone(loop: Loop, cuda: FakeCuda) -> None:
    for number in range(120):
        loop.forward()
        cuda.in_capture = number % 3 == 0
        loop.backward()
        loop.update()
        loop.clock.write()
        cuda.in_capture = False
    assert not loop.faults
    assert not loop.written("falt")


def test_a_phase_that_outlives_its_sample_sets_no_mark(loop: Loop, cuda: FakeCuda) -> None:
    for _ in range(30):
        loop.step()
        loop.catch_up()
    with loop.phase("module_call", loop.model):
        cuda.in_capture = True
        with loop.phase("backward"):
            pass
        cuda.in_capture = False
        assert loop.clock._sample is None
        before = cuda.calls.copy()
    assert cuda.calls == before


def test_a_build_without_cuda_subscribes_to_nothing(tmp_path: Path, cuda: FakeCuda) -> None:
    loop = Loop(tmp_path, cuda, fake_torch(cuda, build=None))
    assert not loop.hub.channel("tensor_copy")
    for _ in range(50):
        loop.step()
    assert not cuda.calls
    assert loop.written("fact")[-1]["device_clock"] == why.NO_BUILD


def test_a_build_with_hip_is_read_alike(tmp_path: Path, cuda: FakeCuda) -> None:
    loop = Loop(tmp_path, cuda, fake_torch(cuda, build=None, hip="6.2"))
    for _ in range(60):
        loop.step()
    loop.catch_up()
    assert loop.per_step()["backward"] == 600


def test_nothing_is_done_while_a_function_is_traced(loop: Loop, cuda: FakeCuda) -> None:
    loop.torch.compiler.is_compiling = lambda: True
    for _ in range(60):
        loop.step()
    assert not cuda.calls


def test_other_threads_are_not_looked_at(loop: Loop, cuda: FakeCuda) -> None:
    for _ in range(30):
        loop.step()
        loop.catch_up()
    loop.forward()
    assert loop.clock._sample is not None
    before = cuda.calls.copy()
    thread = threading.Thread(target=loop.step)
    thread.start()
    thread.join()
    assert cuda.calls == before
    assert loop.clock._sample is not None


# -- where it lies -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "because"),
    [
        ([parameter("cpu", None)], why.ON_CPU),
        ([parameter("cuda", 0), parameter("cuda", 1)], why.SEVERAL),
    ],
)
def test_models_that_cannot_be_told(loop: Loop, parameters: list[object], because: str) -> None:
    loop.model = Model(*parameters)
    loop.optimizer.param_groups = [{"params": parameters}]
    for _ in range(60):
        loop.step()
    assert loop.written("fact")[-1]["device_clock"] == because
    assert not loop.written("devc")


def test_a_model_on_another_device_than_the_current(loop: Loop) -> None:
    loop.model = Model(parameter("cpu", None), parameter("cuda", 1))
    for _ in range(60):
        with loop.phase("module_call", loop.model):
            loop.work(US, 300 * US, device=1)
        with loop.phase("backward"):
            loop.work(US, 600 * US, device=1)
        with loop.phase("optimizer_step", loop.optimizer):
            loop.work(US, 100 * US, device=1)
    loop.catch_up()
    assert loop.per_step() == {"forward": 300, "backward": 600, "optimizer": 100, "other": 0}


def test_copies_on_a_stream_beside_are_not_counted(loop: Loop, cuda: FakeCuda) -> None:
    main, beside = cuda.streams[0], type(cuda.streams[0])(0)
    for _ in range(60):
        cuda.streams[0] = beside
        loop.copy(device_ns=5000 * US)
        cuda.streams[0] = main
        loop.step()
    loop.catch_up()
    assert loop.per_step() == {"forward": 300, "backward": 600, "optimizer": 100, "other": 0}


def test_phases_on_different_streams_are_not_told(loop: Loop, cuda: FakeCuda) -> None:
    main, beside = cuda.streams[0], type(cuda.streams[0])(0)
    for _ in range(100):
        loop.forward()
        cuda.streams[0] = beside
        loop.backward()
        cuda.streams[0] = main
        loop.update()
    loop.catch_up()
    assert loop.written("fact")[-1]["device_clock"] == why.STREAMS


def test_what_is_written_is_what_the_reader_knows(loop: Loop) -> None:
    for _ in range(60):
        loop.step()
        loop.catch_up()
    phases = [DevicePhase(**row) for row in loop.written("devc")[-1]]
    assert {one.phase for one in phases} == {"forward", "backward", "optimizer", "other"}
    assert {one.steps for one in phases} == {loop.clock.resolved}
    facts = loop.written("fact")[-1]
    assert facts == {"device_clock": None, "device_samples": 20, "device_dropped": 0}
