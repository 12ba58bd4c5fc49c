"""The schedule of a diagnosis, with trials that are made by hand and take no time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hotlap.errors import NotMeasurable
from hotlap.experiment.measure import Ask, measure
from hotlap.experiment.native_stacks import NativeStacks
from hotlap.experiment.stored import load
from hotlap.experiment.trials import Lab, Trial
from hotlap.launch.trial import Ended
from hotlap.values.facts import Facts, Measured, Missing
from hotlap.values.phase import ACCOUNTS
from hotlap.values.record import Fault, Record
from hotlap.values.trial import TrialPlan, WindowPlan, WindowResult
from unit.account.records import MS, SECOND, Trainer, loader, record

START_S = 3


@dataclass
class FakeLab(Lab):
    """A lab whose trials come out as planned at once, by a clock that it moves itself.

    step_ms: a step's length by the settings of a trial. changed: what becomes of a trial, by name.
    """

    clock_s: float = 0.0
    step_ms: Callable[[TrialPlan], int] = lambda _: 10
    changed: dict[str, Callable[[Trial], Trial]] = field(default_factory=dict)
    asked: list[tuple[str, TrialPlan]] = field(default_factory=list)
    steps: int = 10**6
    length: int = 100
    """Batches of an epoch."""

    def run(self, name: str, plan: TrialPlan, limit_s: float, **_: Any) -> Trial:
        """Return a trial that went as planned."""
        self.asked.append((name, plan))
        spent_ns = 0
        found = []
        for window in plan.windows:
            result = self._window(window, self.step_ms(plan))
            spent_ns += result.end_ns - result.begin_ns
            found.append(result)
        steps = min(self.steps, max(20, spent_ns // (10 * MS)))
        built = Trainer().begin(other=SECOND).steps(steps).farewell()
        process = built.build(
            loaders=(loader(),),
            facts={"switches": {"epoch_batches": self.length}},
            windows_measured=tuple(found),
            settings_proof={key: {"acted": True} for key in plan.settings},
        )
        took_s = min(limit_s, START_S + spent_ns / 1e9)
        self.clock_s += took_s
        ended = Ended(0, "itself", 0, round(took_s * SECOND))
        made = record(process)
        trial = Trial(name, plan, self.folder / name, ended, made)
        if name in self.changed:
            trial = self.changed[name](trial)
        self.done.append(trial)
        return trial

    def room(self) -> str | None:
        """There is room."""
        return None

    def _window(self, plan: WindowPlan, step_ms: int) -> WindowResult:
        steps = min(plan.steps, round(plan.seconds * 1000 / step_ms), self.steps)
        times = tuple(step_ms * MS + at % 7 * 1000 for at in range(min(steps, 500)))
        if plan.kind == "epoch_end":
            return _epoch_end(plan)
        ns = steps * step_ms * MS
        split = {"data_wait": ns // 2, "forward": ns // 2}
        return WindowResult(
            kind=plan.kind,
            workers=plan.workers,
            begin_ns=0,
            end_ns=ns,
            steps=steps,
            batches=steps,
            samples=8 * steps,
            accounts=tuple(split.get(name, 0) for name in ACCOUNTS),
            step_ns=times,
            ended_by="run ended" if steps == self.steps else "seconds",
        )


def _epoch_end(plan: WindowPlan) -> WindowResult:
    """Return what a window saw of an evaluation of a second."""
    accounts = tuple(SECOND if name == "evaluation" else 0 for name in ACCOUNTS)
    return WindowResult(plan.kind, None, 0, SECOND, 3, 3, 24, accounts, (MS,), ended_by="steps")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    """Return a lab whose clock is the schedule's."""
    made = FakeLab(["python", "train.py"], {}, tmp_path, tmp_path)
    monkeypatch.setattr("hotlap.experiment.measure.time.monotonic", lambda: made.clock_s)
    monkeypatch.setattr(NativeStacks, "why_not", lambda _: "there is no py-spy here")
    return made


def no_wishes(_: Facts) -> tuple[tuple[str, Any], ...]:
    """Return no wish."""
    return ()


def threads(_: Facts) -> tuple[tuple[str, Any], ...]:
    """Return wishes for other thread counts."""
    return (("intra_op_threads", 1), ("intra_op_threads", 4))


def names(lab: FakeLab) -> list[str]:
    """Return the names of the trials in their order."""
    return [name for name, _ in lab.asked]


def told(facts: Facts) -> dict[str, str]:
    """Return what was not measured and why."""
    return dict(facts.not_measured)


def test_one_trial_watches_and_one_measures_the_parts(lab: FakeLab) -> None:
    facts = measure(lab, Ask(), no_wishes)
    assert names(lab) == ["watch", "ceilings", "operators"]
    assert facts.run.trainers[0].step.steps > 0
    assert isinstance(facts.compute_per_s, Measured)
    assert isinstance(facts.loader_per_s, Measured)
    assert isinstance(facts.noise, Measured)
    assert facts.noise.origin == "two equal windows of one trial"
    assert not facts.whole_run
    assert "horizon" in dict(facts.run.not_measured)
    assert load(lab.folder / "facts.json") == facts


def test_native_stacks_come_last_with_what_is_left(
    lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NativeStacks, "why_not", lambda _: None)
    monkeypatch.setattr("hotlap.experiment.plans.wants_native", lambda _: True)
    seen = measure(lab, Ask(budget_s=300.0), threads)
    assert names(lab)[-1] == "native stacks"
    assert told(seen)["native stacks"] == "py-spy saw nothing"  # a made trial has no process
    lab.asked.clear()
    measure(lab, Ask(budget_s=30.0), threads)
    assert "native stacks" not in names(lab)


def test_the_default_budget_is_kept(lab: FakeLab) -> None:
    measure(lab, Ask(), threads)
    assert lab.clock_s <= 1.1 * (3 * START_S + 60) + START_S


@pytest.mark.parametrize("budget", [15.0, 40.0, 120.0])
def test_a_budget_is_kept_but_for_a_part_of_a_trial(lab: FakeLab, budget: float) -> None:
    measure(lab, Ask(budget_s=budget), threads)
    assert lab.clock_s <= 1.1 * budget + START_S


def test_a_small_budget_says_what_it_left_out(lab: FakeLab) -> None:
    facts = measure(lab, Ask(budget_s=8.0), threads)
    assert names(lab) == ["watch"]
    assert isinstance(facts.compute_per_s, Missing)
    assert "budget" in facts.compute_per_s.because
    assert any("budget" in because for because in told(facts).values())


def test_an_epoch_that_was_not_seen_to_end_is_ended_early(lab: FakeLab) -> None:
    lab.length = 10**7
    seen = measure(lab, Ask(), no_wishes)
    assert names(lab) == ["watch", "ceilings", "operators", "epoch end"]
    assert isinstance(seen.epoch_end, Measured)
    assert seen.epoch_end.value.phases == {"evaluation": SECOND}
    assert seen.epoch_end.value.whole
    assert seen.epoch_end.value.steps == pytest.approx(10**7, rel=0.01)


def test_why_the_end_of_an_epoch_was_not_seen_is_said(lab: FakeLab) -> None:
    lab.length = 10**7
    seen = measure(lab, Ask(budget_s=10.0), no_wishes)
    assert "epoch end" not in names(lab)
    assert isinstance(seen.epoch_end, Missing)
    assert "budget" in told(seen)["epoch_end"]


def test_a_run_that_ends_by_itself_is_whole(lab: FakeLab) -> None:
    lab.steps = 300
    facts = measure(lab, Ask(), no_wishes)
    assert facts.whole_run
    assert facts.run.horizon_steps == 300
    assert "what comes later in the run" not in told(facts)


def test_the_user_s_horizon_counts(lab: FakeLab) -> None:
    facts = measure(lab, Ask(horizon=5000), no_wishes)
    assert facts.run.horizon_steps == 5000
    assert facts.run.horizon_source == "given by --horizon"
    assert "horizon" not in dict(facts.run.not_measured)


def test_changes_are_tried_and_their_reference_comes_after_them(lab: FakeLab) -> None:
    lab.step_ms = lambda plan: 5 if plan.settings.get("intra_op_threads") == 4 else 10
    facts = measure(lab, Ask(budget_s=200.0), threads)
    assert names(lab)[3:] == [
        "change intra_op_threads = 1",
        "change intra_op_threads = 4",
        "reference",
    ]
    one, four = facts.what_ifs
    assert one.low <= 1.0 <= one.high
    assert four.ratio == pytest.approx(2.0, rel=0.02)
    assert four.low > 1.9
    assert four.acted


def test_what_helped_a_little_is_tried_once_more(lab: FakeLab) -> None:
    """The first run of the change was lucky; the second is like all others."""
    lucky = iter([9, 9])  # one for each window

    def step_ms(plan: TrialPlan) -> int:
        return next(lucky, 10) if plan.settings.get("intra_op_threads") == 4 else 10

    lab.step_ms = step_ms
    facts = measure(lab, Ask(budget_s=200.0), threads)
    assert names(lab)[-2:] == ["reference", "change intra_op_threads = 4, again"]
    _, four = facts.what_ifs
    assert four.low <= 1.0 < four.high


def _interrupted(trial: Trial) -> Trial:
    return replace(trial, ended=replace(trial.ended, by="interrupt", exit_code=-9))


def _failed(trial: Trial) -> Trial:
    silent = replace(_record(trial), processes=())
    ended = replace(trial.ended, exit_code=1)
    return replace(trial, ended=ended, record=silent, tail="ValueError: planted\n")


def _record(trial: Trial) -> Record:
    assert trial.record is not None
    return trial.record


@pytest.mark.parametrize("last", ["watch", "ceilings", "operators", "change intra_op_threads = 1"])
def test_ctrl_c_ends_the_schedule_with_what_is_known(lab: FakeLab, last: str) -> None:
    lab.changed = {last: _interrupted}
    facts = measure(lab, Ask(budget_s=200.0), threads)
    assert names(lab)[-1] == last
    assert lab.is_interrupted
    assert facts.run.trainers
    assert "Ctrl-C" in told(facts)["the rest of the experiments"]
    if last == "watch":
        assert isinstance(facts.compute_per_s, Missing)
        assert "Ctrl-C" in facts.compute_per_s.because


def test_ctrl_c_between_trials_counts_as_well(lab: FakeLab) -> None:
    def wishes(_: Facts) -> tuple[tuple[str, Any], ...]:
        raise KeyboardInterrupt

    facts = measure(lab, Ask(), wishes)
    assert lab.is_interrupted
    assert isinstance(facts.compute_per_s, Measured)


def test_ctrl_c_before_anything_is_known_is_passed_on(lab: FakeLab) -> None:
    lab.changed = {"watch": lambda trial: replace(_interrupted(trial), record=None)}
    with pytest.raises(KeyboardInterrupt):
        measure(lab, Ask(), no_wishes)


@pytest.mark.parametrize("name", ["ceilings", "operators", "change intra_op_threads = 1"])
def test_a_trial_that_fails_is_told_and_the_others_go_on(lab: FakeLab, name: str) -> None:
    lab.changed = {name: _failed}
    facts = measure(lab, Ask(budget_s=200.0), threads)
    assert "change intra_op_threads = 4" in names(lab)
    words = [*told(facts).values()]
    for part in (facts.compute_per_s, facts.operators):
        words += [part.because] if isinstance(part, Missing) else []
    assert any("planted" in because for because in words), words


def test_a_fault_of_ours_inside_a_trial_is_told_as_such(lab: FakeLab) -> None:
    def faulty(trial: Trial) -> Trial:
        (process,) = _record(trial).processes
        broken = replace(process, faults=(Fault("conditions", "TypeError: x", 1),))
        ended = replace(trial.ended, by="asked", exit_code=-15)
        return replace(trial, ended=ended, record=replace(_record(trial), processes=(broken,)))

    lab.changed = {"ceilings": faulty}
    facts = measure(lab, Ask(), no_wishes)
    assert "hotlap itself failed" in told(facts)["each part alone"]


def test_where_nobody_trained_the_facts_say_why(lab: FakeLab) -> None:
    lab.changed = {"watch": _failed}
    facts = measure(lab, Ask(), no_wishes)
    assert names(lab) == ["watch"]
    assert facts.run.trainers == ()
    assert "planted" in told(facts)["the training"]


def test_a_trial_that_cannot_be_recorded_is_told(lab: FakeLab) -> None:
    def full(_: Trial) -> Trial:
        raise OSError(28, "No space left on device")

    lab.changed = {"ceilings": full}
    facts = measure(lab, Ask(), no_wishes)
    assert isinstance(facts.compute_per_s, Missing)
    assert "No space left" in facts.compute_per_s.because
    lab.changed = {"watch": full}
    with pytest.raises(NotMeasurable, match="No space left"):
        measure(lab, Ask(), no_wishes)


def test_a_run_with_few_steps_still_has_its_loader_measured(lab: FakeLab) -> None:
    lab.steps = 20
    facts = measure(lab, Ask(), no_wishes)
    kinds = [one.kind for one in dict(lab.asked)["ceilings"].windows]
    assert kinds[:2] == ["warm_up", "drain"]
    assert isinstance(facts.loader_per_s, Measured)
    assert isinstance(facts.compute_per_s, Missing)
    assert "20 steps" in facts.compute_per_s.because


def test_a_batch_job_s_end_bounds_everything(lab: FakeLab) -> None:
    measure(lab, Ask(most_s=20.0), threads)
    assert lab.clock_s <= 1.1 * 20 + START_S
