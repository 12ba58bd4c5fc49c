"""Training scripts in many styles, measured through `hotlap run`: every phase agrees with what the
script clocked itself, and the training ends with the very weights of a bare run.

A phase that hotlap cannot know by design is compared as the sum that it must be in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from process.style_compare import (
    SEPARATE,
    phase_totals,
    run_differences,
    step_differences,
    together,
)
from process.style_runs import Bare, Measured, again, bare, measured, one_worker

pytestmark = pytest.mark.slow

FORKED = {"spawn": "fork", "forkserver": "fork"}
NOISE = 4
"""Attempts: a process that loses its core between our clock and the script's looks like a wrong
phase, but not every time."""


@dataclass(frozen=True)
class Style:
    """A script, and what a reader should find.

    groups: step phases that can only be told together. steps: None as many as the script says.
    roles: data set and role of every loader that gave batches. edge: run phases of the script
    that are the edges of epochs.
    """

    words: tuple[str, ...]
    roles: tuple[tuple[str, str], ...]
    groups: Sequence[Sequence[str]] = SEPARATE
    rule: str = "optimizer"
    ticks_per_step: float = 1.0
    steps: int | None = None
    edge: tuple[str, ...] = ("epoch_edge",)

    def __str__(self) -> str:
        return "_".join(word.removesuffix(".py").strip("-") for word in self.words)


def training(*datasets: str) -> tuple[tuple[str, str], ...]:
    """Return the roles of loaders that all train."""
    return tuple((name, "training") for name in datasets)


STYLES = (
    Style(("plain.py",), training("Points")),
    Style(("plain_workers.py",), training("Images")),
    Style(("accumulation.py",), training("Sequences")),
    Style(("gan.py",), training("Circle"), ticks_per_step=2),
    Style(("gan_critic.py",), training("Moons"), ticks_per_step=6),
    # The loss is a function, not a module: inside a closure its time is the optimizer's.
    Style(("lbfgs.py",), training("Regression"), together("forward", "optimizer")),
    # The script's clock sees one statement, in which the gradients' hooks step the optimizers.
    Style(("optimizer_in_backward.py",), training("Points"), together("backward", "optimizer")),
    Style(("iterable.py",), training("Lines")),
    # No loader is visible: making a batch is host code. A first backward without any loader
    # counts as the end of a step until an optimizer has stepped.
    Style(("memmap.py",), (), together("data_wait", "other"), ticks_per_step=1),
    Style(("eval_checkpoint.py",), (("Digits", "training"), ("Digits", "evaluation"))),
    Style(("eval_no_mode.py",), (("Table", "training"), ("Table", "evaluation"))),
    Style(("eval_grad.py",), (("Data", "training"), ("Data", "evaluation"))),
    Style(("frozen_eval.py",), training("Photos")),
    Style(("distill.py",), training("Points")),
    Style(
        ("several_loaders.py",),
        (("Labelled", "training"), ("Unlabelled", "training"), ("Labelled", "evaluation")),
    ),
    Style(("contexts.py", "--context", "spawn", "--plant", "cpu=1"), training("Waves")),
    Style(("contexts.py", "--context", "forkserver", "--plant", "cpu=1"), training("Waves")),
    Style(("styles_pkg.train",), training("Shapes")),
    # Its lap of logging contains the read of the loss and what `logging` does before a handler.
    Style(("chdir_mp.py",), training("Parts"), together("logging", "other")),
    Style(("lightning_style.py",), (("TrainPoints", "training"), ("Points", "evaluation"))),
    # accelerate's wrapper of the optimizer is host code to us and the optimizer to the script.
    Style(
        ("hf_trainer.py",),
        (("TrainTokens", "training"), ("Tokens", "evaluation"), ("Tokens", "evaluation")),
        # Its clock hangs in methods around the loop's own fetches, made ahead of their step.
        together("data_wait", "optimizer", "other"),
    ),
    # What accelerate does around forward, backward and step is host code to us, and belongs to
    # the statement that it is called by to the script.
    Style(
        ("accelerate_style.py", "--accumulate", "4"),
        training("Points"),
        together("forward", "backward", "optimizer", "other"),
    ),
    # An update by hand is host code; the loader ends the steps.
    Style(("no_optimizer.py",), training("Line"), together("optimizer", "other"), "loader"),
    # Functional: no module, no loader, no optimizer. Only backward shows.
    Style(
        ("no_loader_no_optimizer.py",),
        (),
        together("data_wait", "forward", "optimizer", "other"),
        "backward",
    ),
    # Attempts that the scaler skipped are no optimizer steps; they are in the step that follows.
    # The loss is a function, and the scaler's own work around the step is host code.
    Style(
        ("amp_scaler.py",),
        training("Points"),
        together("forward", "optimizer", "other"),
        steps=90,
    ),
    # The loader runs in a thread of the script's own: that is not the loop's wait.
    Style(("manual_thread.py",), (), together("data_wait", "other")),
    # What lies between the trainings is host code between epochs.
    Style(
        ("kfold.py",),
        (("Subset", "training"), ("Subset", "evaluation")) * 3,
        edge=("epoch_edge", "set_up"),
    ),
    # The script's `logging` is its whole lines of code, with formatting and norms; see below.
    Style(("chatty.py",), training("Points"), together("logging", "other")),
)

each_style = pytest.mark.parametrize(
    "style", [pytest.param(one, marks=one_worker(*one.words), id=str(one)) for one in STYLES]
)


def agreed(style: Style, differences: Callable[[Measured], list[str]]) -> list[str]:
    """Return what disagrees in each of several attempts; nothing once one agrees."""
    found: list[str] = []
    for attempt in range(NOISE):
        run = again(*style.words) if attempt else measured(*style.words)
        now = differences(run)
        if not now:
            return []
        found += [f"attempt {attempt + 1}: {one}" for one in now]
    return found


@each_style
def test_every_phase_agrees_with_the_script(style: Style) -> None:
    def differences(run: Measured) -> list[str]:
        edges = {"epoch_edge": style.edge}
        return [
            *step_differences(run.log, run.process, style.groups),
            *run_differences(run.log, run.trainer, edges),
        ]

    assert agreed(style, differences) == []


@each_style
def test_steps_are_counted_as_the_script_does(style: Style) -> None:
    run = measured(*style.words)
    step = run.trainer.step
    assert step.steps == (style.steps or run.log["expected_steps"])
    assert step.rule == style.rule
    assert step.ticks_per_step == pytest.approx(style.ticks_per_step)


@each_style
def test_loaders_have_their_roles_and_batches(style: Style) -> None:
    run = measured(*style.words)
    used = [one for one in run.trainer.loaders if one.batches]
    assert [(one.dataset, one.role) for one in used] == list(style.roles)
    if style.roles:
        batches = sum(window.batches for window in run.process.windows)
        # An attempt that was skipped at the very end is in no step.
        last = len(run.log["steps"]) - 1
        assert batches == run.log["batches"] - (last in run.log.get("skipped_steps", ()))


@each_style
def test_one_trainer_and_no_fault_and_no_word(style: Style) -> None:
    run = measured(*style.words)
    assert run.result.code == 0
    assert len(run.summary.trainers) == 1
    assert run.summary.faults == ()
    assert run.record.damage == ()
    assert b"hotlap" not in run.result.stdout + run.result.stderr


@each_style
def test_time_is_neither_lost_nor_counted_twice(style: Style) -> None:
    run = measured(*style.words)
    windows = run.process.windows
    for window in windows:
        assert sum(window.accounts) == window.end_ns - window.begin_ns
    assert sum(phase_totals(run.process).values()) == windows[-1].end_ns - windows[0].begin_ns
    parts = [part.ns for part in run.trainer.phases.values()]
    assert sum(ns for ns in parts if ns is not None) == run.summary.wall_ns


@each_style
def test_weights_are_those_of_a_bare_run(style: Style, forked: Bare) -> None:
    ours = measured(*style.words).log["weights_sha256"]
    # Bare workers are forked there too: how they start changes no number.
    log = forked.log(*(FORKED.get(word, word) for word in style.words))
    if log is not None and log["weights_sha256"] == ours:
        return
    alone = bare(*style.words), bare.__wrapped__(*style.words)
    found = {one.log and one.log["weights_sha256"] for one in alone}
    if len(found) > 1:
        pytest.skip("two bare runs differ on this machine, so nothing can be said")
    assert found == {ours}
