"""What is special about one style or another: compilation, workers, children, silence."""

from __future__ import annotations

import pytest

from hotlap.launch.absence import explain
from process.style_compare import log_totals, phase_totals, step_differences, together
from process.style_runs import Bare, measured, one_worker

pytestmark = pytest.mark.slow

COMPILED = ("compiled.py", "--backend", "aot_eager")
BROKEN_GRAPH = ("compiled.py", "--backend", "eager", "--break-graph", "--how", "method")
WORKERS = ("plain_workers.py",)
SPAWNED = ("contexts.py", "--context", "spawn", "--plant", "cpu=1")
FORKSERVER = ("contexts.py", "--context", "forkserver", "--plant", "cpu=1")
ITERABLE = ("iterable.py",)


each_compiled = pytest.mark.parametrize(
    "words",
    [
        pytest.param(COMPILED, marks=one_worker(*COMPILED), id="whole"),
        pytest.param(BROKEN_GRAPH, marks=one_worker(*BROKEN_GRAPH), id="broken"),
    ],
)


@each_compiled
def test_the_compiler_sees_the_same_graphs(words: tuple[str, ...], forked: Bare) -> None:
    ours, alone = measured(*words), forked.log(*words)
    assert alone is not None
    for fact in ("dynamo", "weights_sha256", "losses"):
        assert ours.log[fact] == alone[fact], fact


@each_compiled
def test_compilation_is_no_part_of_a_step(words: tuple[str, ...]) -> None:
    run = measured(*words)
    ours, theirs = phase_totals(run.process), log_totals(run.log)
    assert ours["compile"] > 0
    # The script has compilation in its forward, and in the backward that is compiled on first use.
    without = sum(theirs.values()) - ours["compile"]
    passes = ours["forward"] + ours["backward"] + ours["compile"]
    assert passes == pytest.approx(theirs["forward"] + theirs["backward"], rel=0.1)
    for phase in ("forward", "backward"):
        assert ours[phase] <= 1.1 * theirs[phase] + 0.01 * without, phase
    for phase in ("data_wait", "optimizer"):
        assert ours[phase] == pytest.approx(theirs[phase], rel=0.1, abs=0.01 * without), phase
    assert ours["other"] == pytest.approx(theirs["other"], abs=0.03 * without)
    assert run.trainer.step.steps == run.log["expected_steps"]
    # Tracing a model calls it and its backward: nothing of that is the training's.
    backwards = sum(window.backwards for window in run.process.windows)
    assert backwards == run.log["batches"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        pytest.param(words, parts, marks=one_worker(*words), id=name)
        for name, words, parts in (
            ("fork", WORKERS, ("blocked", "cpu", "collate")),
            ("spawn", SPAWNED, ("cpu", "collate")),
            ("forkserver", FORKSERVER, ("cpu", "collate")),
            ("iterable", ITERABLE, ("cpu", "blocked")),
        )
    ],
)
def test_what_workers_do_is_in_their_split(words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    run = measured(*words)
    (loader,) = run.trainer.loaders
    planted = run.log["workers"]
    assert loader.workers == 2
    assert loader.batches == pytest.approx(run.log["batches"], abs=2 * loader.workers)
    for part in parts:
        # Sleep and CPU are at least what is planted, however busy the machine is.
        assert loader.split[part].ns is not None
        assert loader.split[part].ns >= 0.95 * planted[f"{part}_ns"], part
    for part in ("cpu",):
        assert loader.split[part].ns <= 1.25 * planted[f"{part}_ns"] + 4e6, part
    assert loader.split["ipc"].ns is not None


@one_worker("several_loaders.py")
def test_the_slow_one_of_several_loaders_is_told() -> None:
    run = measured("several_loaders.py")
    feeding = [one for one in run.trainer.loaders if one.role == "training"]
    slowest = max(feeding, key=lambda one: one.batch_ns or 0)
    assert slowest.dataset == "Unlabelled"
    by_role = {(one.dataset, one.role): one for one in run.trainer.loaders}
    for (dataset, role), loader in by_role.items():
        theirs = run.log["loaders"]["validation" if role == "evaluation" else dataset]
        assert loader.batches == theirs["batches"]
        assert loader.split["blocked"].ns is not None
        assert loader.split["blocked"].ns >= 0.95 * theirs["per_batch_ns"]


@one_worker("chdir_mp.py")
def test_children_of_the_script_are_no_trainers() -> None:
    run = measured("chdir_mp.py")
    assert [one.pid for one in run.summary.trainers] == [run.log["pid"]]
    assert run.log["children"]["failed"] == 4
    assert run.log["children"]["stderr"] == ""
    # The folder that the script went to is its own; the record stays where it was started.
    assert all(
        str(run.record.path) not in one.file
        for t in run.trainer.touches
        if (one := t.place) is not None
    )


@one_worker("styles_pkg.train")
def test_a_module_is_told_by_its_files() -> None:
    run = measured("styles_pkg.train")
    (loader,) = run.trainer.loaders
    assert loader.place is not None
    assert loader.place.file == "styles_pkg/train.py"
    assert run.log["package"] == "styles_pkg"


@one_worker("memmap.py")
def test_a_script_without_loader_waits_in_other() -> None:
    run = measured("memmap.py")
    assert run.trainer.loaders == ()
    assert phase_totals(run.process)["data_wait"] == 0
    assert log_totals(run.log)["data_wait"] > 0


@one_worker("no_loader_no_optimizer.py")
def test_functions_have_no_forward_and_no_optimizer() -> None:
    ours = phase_totals(measured("no_loader_no_optimizer.py").process)
    assert ours["forward"] == ours["optimizer"] == ours["data_wait"] == 0
    assert ours["backward"] > 0


@one_worker("manual_thread.py")
def test_a_thread_that_prefetches_is_not_the_loop() -> None:
    run = measured("manual_thread.py")
    assert phase_totals(run.process)["data_wait"] == 0
    assert run.log["thread_ns"] > 0


@one_worker("chatty.py")
def test_writes_are_told_with_their_lines() -> None:
    run = measured("chatty.py")
    lines, steps = run.log["lines"], run.log["expected_steps"]
    written = [one for one in run.process.touches if one.kind in ("stdout", "logging")]
    assert all(one.place and one.place.file.endswith("chatty.py") for one in written)
    records = [one.count for one in written if one.kind == "logging"]
    assert records == [lines * steps]
    most = max(written, key=lambda one: one.count)
    assert most.kind == "stdout"
    assert most.count >= lines * steps
    ours, theirs = phase_totals(run.process)["logging"], log_totals(run.log)["logging"]
    assert 0 < ours <= theirs
    assert step_differences(run.log, run.process, together("logging", "other")) == []


@one_worker("inference_only.py")
def test_inference_has_no_step_and_says_so() -> None:
    run = measured("inference_only.py")
    assert run.result.code == 0
    assert sum(one.step.steps for one in run.summary.trainers) == 0
    reason = explain(run.record, run.record.exit_code)
    assert reason is not None
    assert "no backward pass" in reason
