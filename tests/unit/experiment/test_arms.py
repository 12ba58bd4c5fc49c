"""Arms: which steps they measure, what a trial says as a run of one, and how runs are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotlap.experiment import arms, stored
from hotlap.experiment.arms import ARMS_FILE, Bench, Span, arm_run, epoch_steps, span_of
from hotlap.experiment.trials import Lab, Trial
from hotlap.launch.trial import Ended
from hotlap.values.arm import Arm, ArmRun
from hotlap.values.facts import Facts
from hotlap.values.phase import ACCOUNTS
from hotlap.values.record import Process
from hotlap.values.summary import Part
from hotlap.values.trial import TrialPlan, WindowResult
from unit.account.records import SECOND, Trainer, record
from unit.diagnose import made

SPAN = Span(warm_up=5, steps=40, seconds=4.0, holds_epoch=False)
QUICK = Arm({"anomaly_mode": False}, {"SOME_VARIABLE": "1"})
MS = 1_000_000


def facts(steps: int = 1000, whole: bool = True, epoch: float | None = None, **more: Any) -> Facts:
    """Return facts of steps of 100 ms, with 10 of warm-up. epoch: steps of one, if known."""
    known = {} if epoch is None else {"epoch_batches": 2 * epoch}
    given = made.facts(
        made.run({}, **more), whole_run=whole, defaults=known, counts={"batches_per_step": 2.0}
    )
    first = given.run.trainers[0]
    step = replace(first.step, steps=steps)
    return replace(given, run=replace(given.run, trainers=(replace(first, step=step),)))


def span(found: Span | str) -> Span:
    """Return a span; where there is none, show why."""
    assert isinstance(found, Span), found
    return found


def test_a_run_measures_some_seconds_after_the_warm_up() -> None:
    found = span(span_of(facts(), seconds=6.0))
    assert (found.warm_up, found.steps, found.holds_epoch) == (10, 60, False)
    assert found.seconds == pytest.approx(6.0)


def test_whole_epochs_are_measured_where_they_are_short_enough() -> None:
    assert span(span_of(facts(epoch=25), seconds=6.0)).steps == 50
    long = span(span_of(facts(epoch=140), seconds=6.0))
    assert (long.steps, long.holds_epoch) == (140, True)
    longer = span(span_of(facts(epoch=200), seconds=6.0))
    assert (longer.steps, longer.holds_epoch) == (60, False)


def test_the_user_s_steps_are_taken_as_they_are() -> None:
    found = span(span_of(facts(epoch=25), steps=30))
    assert (found.steps, found.holds_epoch) == (30, True)


def test_a_short_run_is_measured_as_far_as_it_goes() -> None:
    found = span(span_of(facts(steps=40)))
    assert (found.warm_up, found.steps) == (10, 30)
    assert span(span_of(facts(steps=12))).warm_up == 3


def test_a_run_that_was_stopped_does_not_bound_the_span() -> None:
    assert span(span_of(facts(steps=40, whole=False))).steps == 60


def test_what_is_too_short_says_so() -> None:
    assert span_of(facts(steps=9)) == "the run has 9 steps, too few to compare two runs of it"
    assert span_of(made.facts(made.run({}, trainers=()))) == "the length of a step is not known"


def test_what_lies_between_steps_counts_to_their_length() -> None:
    given = facts()
    first = replace(given.run.trainers[0], phases={"evaluation": Part(100 * SECOND, 0.5)})
    slow = replace(given, run=replace(given.run, trainers=(first,)))
    assert span(span_of(slow, seconds=6.0)).steps == 30


def test_an_epoch_is_counted_in_steps() -> None:
    assert epoch_steps(facts(epoch=25)) == 25
    assert epoch_steps(facts()) is None


def trial(*processes: Process, code: int = 0, by: str = "itself", tail: str = "") -> Trial:
    """Return a trial with a record of these processes."""
    ended = Ended(code, by, 0, 9 * SECOND)
    return Trial("run 1", TrialPlan(), Path(), ended, record(*processes), tail)


def window(kind: str = "baseline", **fields: Any) -> WindowResult:
    """Return a window of 40 steps of 100 ms."""
    given: dict[str, Any] = {
        "accounts": tuple(range(len(ACCOUNTS))),
        "step_ns": (100 * MS,) * 40,
        "spans_ns": (100 * MS,) * 40,
        "ended_by": "steps",
    }
    return WindowResult(kind, None, 0, 4 * SECOND, 40, 40, 320, **(given | fields))


def trained(*windows: WindowResult, **fields: Any) -> Process:
    """Return a process that trained and measured these windows."""
    return replace(
        Trainer().begin().steps(45).farewell().build(), windows_measured=windows, **fields
    )


def test_a_sound_trial_is_a_run_of_its_arm() -> None:
    proof = {"anomaly_mode": {"value": False, "acted": True, "proof": "passed over"}}
    found = arm_run(QUICK, 3, trial(trained(window("warm_up"), window(), settings_proof=proof)))
    assert found.failed is None
    assert (found.arm, found.nth, found.steps) == (QUICK, 3, 40)
    assert found.total_ns == 4 * SECOND
    assert found.step_ns == 100 * MS
    assert found.acted("anomaly_mode")
    assert found.proof("anomaly_mode") == "passed over"
    assert found.start_s is not None
    assert tuple(found.accounts) == ACCOUNTS


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (trial(trained(window()), code=1, tail="x\nValueError: no\n"), "exit code 1): ValueError"),
        (trial(code=-9), "killed by signal 9"),
        (trial(trained(window()), by="interrupt"), "Ctrl-C"),
        (trial(trained(window(ended_by="failed: no batch", spans_ns=()))), "no batch"),
        (trial(trained(window("warm_up"))), "before it could be measured"),
        (trial(), "before it could be measured"),
    ],
)
def test_a_trial_that_measured_nothing_says_why(one: Trial, says: str) -> None:
    found = arm_run(QUICK, 0, one)
    assert found.failed is not None
    assert says in found.failed
    assert found.spans_ns == ()
    assert found.step_ns is None
    assert not found.acted("anomaly_mode")


class Hand:
    """Makes the runs of a bench by hand, and counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *others: float) -> None:
        self.made: list[Arm] = []
        self._others = list(others)
        monkeypatch.setattr(arms.Bench, "_measured", self._measure)

    def _measure(self, arm: Arm, says: str) -> ArmRun:
        assert says
        self.made.append(arm)
        share = self._others.pop(0) if self._others else None
        spans = (len(self.made),) * 4
        return ArmRun(arm, len(self.made), spans, 8, 2.5, {}, others_share=share)


def bench(folder: Path) -> Bench:
    """Return a bench over a folder."""
    return Bench(Lab(("python", "train.py"), {}, folder, folder), SPAN, 2.0)


def test_an_interrupted_experiment_is_taken_up_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = Hand(monkeypatch)
    first = bench(tmp_path)
    made = [first.run(Arm()), first.run(QUICK), first.run(Arm())]
    lines = (tmp_path / ARMS_FILE).read_text()
    again = bench(tmp_path)
    assert [again.run(Arm()), again.run(Arm()), again.run(QUICK)] == [made[0], made[2], made[1]]
    assert len(hand.made) == 3
    again.run(QUICK)
    assert len(hand.made) == 4
    assert len(again.of(QUICK)) == 2
    assert (tmp_path / ARMS_FILE).read_text().startswith(lines)


@pytest.mark.parametrize("torn", ['{"=": "ArmRun", "nth', "[1, 2]\n", "{}\n", '"a"\n'])
def test_a_torn_line_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: str
) -> None:
    hand = Hand(monkeypatch)
    bench(tmp_path).run(Arm())
    with (tmp_path / ARMS_FILE).open("a") as file:
        file.write(torn)
    again = bench(tmp_path)
    again.run(Arm())
    assert len(hand.made) == 1
    again.run(QUICK)
    third = bench(tmp_path)
    third.run(QUICK)
    assert len(hand.made) == 2, "what was kept after a torn line is lost"


def test_runs_survive_their_file() -> None:
    one = ArmRun(QUICK, 1, (5, 6), 4, 2.5, {"anomaly_mode": {"acted": True, "proof": "x"}})
    assert stored.unpacked(json.loads(json.dumps(stored.packed(one)))) == one


def test_a_disturbed_run_is_made_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = Hand(monkeypatch, 0.5, 0.02)
    found = bench(tmp_path).run(Arm())
    assert len(hand.made) == 2
    assert found.others_share == 0.02
    assert len((tmp_path / ARMS_FILE).read_text().splitlines()) == 1


def test_a_run_that_ctrl_c_ended_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Hand(monkeypatch)
    one = bench(tmp_path)
    one.lab.is_interrupted = True
    one.run(Arm())
    assert not (tmp_path / ARMS_FILE).exists()


def test_how_long_a_run_takes(tmp_path: Path) -> None:
    assert bench(tmp_path).about_s == pytest.approx(2.0 + 4.0 * 45 / 40)
