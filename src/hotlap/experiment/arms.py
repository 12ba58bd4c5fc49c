"""Arms: the command under some knobs, each run in a fresh process, all doing the same work.

A run of an arm warms up for some steps and then measures a fixed number of them, with all that
lies between them (evaluations, checkpoints, the ends of epochs). Every arm measures the same steps
of the same training, so what two runs differ by is the knobs and the machine.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hotlap.account.summarise import summarise
from hotlap.errors import HotlapError
from hotlap.experiment import stored
from hotlap.experiment.late import Late
from hotlap.experiment.trials import Lab, Trial
from hotlap.experiment.watched import start_up_s, trainer
from hotlap.experiment.windows import of_kind, results, why_none
from hotlap.values.arm import Arm, ArmRun
from hotlap.values.facts import Facts
from hotlap.values.phase import ACCOUNTS
from hotlap.values.trial import TrialPlan, WindowPlan

ARMS_FILE: Final = "arms.jsonl"
DEFAULT_SECONDS: Final = 6.0
_LEAST_STEPS: Final = 8
_MOST_WARM_UP: Final = 20
_STRETCH: Final = 2.5
"""How many times longer than asked for a run may be to hold a whole epoch with its end."""
_SLOWER: Final = 2.5
"""An arm that takes so many times longer than the command as it stands is cut short."""
DISTURBED: Final = 0.10
"""A run beside which other programs used more of the cores (0-1) is made once more."""
_BETWEEN: Final = ("evaluation", "checkpoint", "epoch_edge")


@dataclass(frozen=True)
class Span:
    """What each run of an arm measures.

    warm_up: steps before. steps: measured. seconds: what these take as the command stands.
    holds_epoch: an epoch's end lies in it.
    """

    warm_up: int
    steps: int
    seconds: float
    holds_epoch: bool


def span_of(facts: Facts, seconds: float = DEFAULT_SECONDS, steps: int | None = None) -> Span | str:
    """Return which steps the arms of an experiment measure, or in words why there are none.

    seconds: how long a run should measure. steps: how many steps the user asked for.
    """
    step = facts.run.trainers[0].step if facts.run.trainers else None
    each_s = _each_s(facts)
    if step is None or not each_s:
        return "the length of a step is not known"
    warm_up = max(1, min(step.warm_up_steps, _MOST_WARM_UP))
    epoch = epoch_steps(facts)
    wanted = steps or max(_LEAST_STEPS, math.ceil(seconds / each_s))
    if steps is None and epoch is not None and epoch <= _STRETCH * wanted:
        wanted = math.ceil(max(1, round(wanted / epoch)) * epoch)
    if facts.whole_run:
        warm_up = min(warm_up, max(1, step.steps // 4))
        wanted = min(wanted, step.steps - warm_up)
        if wanted < _LEAST_STEPS:
            return f"the run has {step.steps} steps, too few to compare two runs of it"
    holds = epoch is not None and wanted >= epoch
    return Span(warm_up, wanted, wanted * each_s, holds)


def epoch_steps(facts: Facts) -> float | None:
    """Return how many steps an epoch has; None where that is not known."""
    batches = facts.defaults.get("epoch_batches")
    each = facts.counts.get("batches_per_step", 0.0)
    return batches / each if batches and each > 0 else None


def _each_s(facts: Facts) -> float | None:
    """Return the wall time per step with what lies between steps, in seconds."""
    if not facts.run.trainers:
        return None
    first = facts.run.trainers[0]
    step_ns = first.step.mean_ns or first.step.median_ns
    if not step_ns or not first.step.steps:
        return None
    between = sum(
        part.ns or 0 for name, part in first.phases.items() if name in _BETWEEN and part is not None
    )
    return (step_ns + between / first.step.steps) / 1e9


@dataclass
class Bench:
    """Runs arms, and keeps what each run measured, so that an experiment can be taken up again.

    span: what every run measures. start_s: what comes before it as the command stands.
    """

    lab: Lab
    span: Span
    start_s: float
    runs: list[ArmRun] = field(default_factory=list)
    _known: list[ArmRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._known = list(_stored(self.lab.folder / ARMS_FILE))

    @property
    def about_s(self) -> float:
        """Return how long one run takes, as the command stands."""
        return self.start_s + self.span.seconds * (1 + self.span.warm_up / self.span.steps)

    @property
    def is_interrupted(self) -> bool:
        """Tell whether Ctrl-C has ended the experiment."""
        return self.lab.is_interrupted

    def of(self, arm: Arm) -> list[ArmRun]:
        """Return all sound runs of an arm, in order."""
        return [one for one in self.runs if one.arm == arm and one.failed is None]

    def run(self, arm: Arm, says: str = "") -> ArmRun:
        """Run an arm once more and return what it measured.

        A run that an earlier, interrupted experiment in the same folder made is taken from there.
        Raises HotlapError where no trial can be recorded any more.
        """
        says = says or arm.says
        found = self._take(arm, says)
        if found is None:
            found = self._measured(arm, says)
            if _is_disturbed(found) and not self.is_interrupted:
                again = self._measured(arm, f"{says}, once more: others were busy")
                found = min(found, again, key=lambda one: (one.failed is not None, _others(one)))
            if not self.is_interrupted:
                found = replace(found, says=says, asked_steps=self.span.steps)
                _store(self.lab.folder / ARMS_FILE, found)
        self.runs.append(found)
        return found

    def _take(self, arm: Arm, says: str) -> ArmRun | None:
        """Return a run that was made earlier for the same purpose, and measured the same steps."""
        wanted = arm, says, self.span.steps
        for one in self._known:
            if (one.arm, one.says, one.asked_steps) == wanted:
                self._known.remove(one)
                return one
        return None

    def _measured(self, arm: Arm, says: str) -> ArmRun:
        nth = len(self.runs)
        seconds = self.span.seconds
        plan = TrialPlan(
            windows=(
                WindowPlan("warm_up", self.span.warm_up, 10**9),
                WindowPlan("baseline", self.span.steps, max(5.0, _SLOWER * seconds)),
            ),
        )
        limit_s = 60.0 + 4 * self.start_s + (self.span.warm_up / self.span.steps + 3) * 4 * seconds
        late = Late(4 * seconds + 120.0)
        try:
            with self.lab.under(arm.settings, arm.environment):
                trial = self.lab.run(
                    f"run {nth + 1}",
                    plan,
                    limit_s,
                    says=says,
                    about_s=self.about_s,
                    on_poll=late.is_over,
                )
        except OSError as error:
            raise HotlapError(f"a run could not be recorded: {error}") from error
        self.lab.is_interrupted = self.lab.is_interrupted or trial.ended.by == "interrupt"
        return arm_run(arm, nth, trial)


def arm_run(arm: Arm, nth: int, trial: Trial) -> ArmRun:
    """Return what a trial measured, as a run of an arm."""
    process = trainer(trial.record) if trial.record is not None else None
    found = of_kind(results(trial), "baseline")
    failed = None
    if not trial.is_sound:
        failed = trial.why_not()
    elif not found or not found[0].spans_ns:
        failed = why_none(results(trial), "baseline", trial)
    window = found[0] if found and failed is None else None
    steps = window.steps if window is not None else 0
    others = None
    if trial.record is not None:
        others = summarise(trial.record).machine.others_cpu_share
    return ArmRun(
        arm=arm,
        nth=nth,
        spans_ns=window.spans_ns if window is not None else (),
        steps=steps,
        start_s=start_up_s(trial.record) if trial.record is not None else None,
        proofs=dict(process.settings_proof) if process is not None else {},
        failed=failed,
        others_share=others,
        accounts=_accounts(window.accounts) if window is not None else {},
    )


def _others(run: ArmRun) -> float:
    return run.others_share or 0.0


def _is_disturbed(run: ArmRun) -> bool:
    """Tell whether other programs took so much of the cores that the run is no measure."""
    return run.failed is None and _others(run) >= DISTURBED


def _accounts(accounts: Iterable[int]) -> dict[str, int]:
    return dict(zip(ACCOUNTS, accounts, strict=False))


def _store(path: Path, run: ArmRun) -> None:
    line = json.dumps(stored.packed(run), separators=(",", ":"))
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        torn = file.read(1) not in (b"", b"\n")
        file.write(("\n" * torn + line + "\n").encode())


def _stored(path: Path) -> Iterable[ArmRun]:
    """Yield the runs of an earlier experiment; a torn last line is passed over."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            run: Any = stored.unpacked(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(run, ArmRun) and isinstance(run.arm.settings, Mapping):
            yield run
