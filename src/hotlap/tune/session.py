"""One tuning from its first diagnosis to its plan."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hotlap.diagnose import judge, wishes
from hotlap.errors import NotMeasurable
from hotlap.experiment import stored
from hotlap.experiment.arms import DISTURBED, Bench, Span, span_of
from hotlap.experiment.measure import FACTS_FILE, Ask, measure
from hotlap.experiment.trials import Lab
from hotlap.knobs import catalogue
from hotlap.tune.confirm import Confirmed, confirm
from hotlap.tune.fingerprint import fingerprint
from hotlap.tune.plans import plan_of
from hotlap.tune.predicted import of_run
from hotlap.tune.proof import Prover
from hotlap.tune.search import Means, Search
from hotlap.tune.verdict import Verdict, noise, pays_back
from hotlap.values.arm import Arm
from hotlap.values.comparison import MINIMUM_EFFECT
from hotlap.values.facts import Facts
from hotlap.values.finding import Diagnosis
from hotlap.values.knob import Case
from hotlap.values.plan import Plan
from hotlap.values.tuning import Sameness, Tuning

DEFAULT_BUDGET_S: Final = 900.0
_DIAGNOSIS_SHARE: Final = 0.4
_AGAIN_S: Final = 25.0
"""Wall time of another diagnosis beside two start-ups."""


@dataclass(frozen=True)
class Order:
    """What the user asked for.

    budget_s: wall time of all. numerics: the strongest class that may be applied. horizon: steps of
    a whole run. steps: measured steps per run. insisted: values of knobs to try against all advice.
    """

    budget_s: float = DEFAULT_BUDGET_S
    numerics: str = "resampled"
    horizon: int | None = None
    steps: int | None = None
    insisted: Mapping[str, Any] = field(default_factory=dict)


def tune(lab: Lab, order: Order) -> Tuning:
    """Diagnose a command, try the knobs that answer, and return the plan that is proven.

    lab: where trials are run; what is known is kept in its folder, so that a tuning that was
    interrupted can be taken up. Raises NotMeasurable where there is nothing to tune;
    KeyboardInterrupt when Ctrl-C came before anything was known.
    """
    session = _Session(lab, order)
    try:
        return session.run()
    finally:
        lab.close()


class _Session:
    def __init__(self, lab: Lab, order: Order) -> None:
        self.lab = lab
        self.order = order
        self.until_s = time.monotonic() + order.budget_s
        self.diagnoses: list[tuple[Facts, Diagnosis]] = []
        self.prover: Prover | None = None

    def run(self) -> Tuning:
        case = self._first()
        facts = case.facts
        span = span_of(facts, steps=self.order.steps)
        if isinstance(span, str):
            raise NotMeasurable(f"two runs of it cannot be compared: {span}")
        bench = Bench(self.lab, span, _start_s(facts))
        self.prover = Prover(bench, facts)
        means = Means(bench, self._environment, self._again, self.prover.prove, _snippet)
        asked = self.order
        search = Search(
            means, case, asked.numerics, self.until_s, facts.run.horizon_steps, asked.insisted
        )
        try:
            if not self.lab.is_interrupted:
                search.run()
                search.prune()
                search.offer()
        except KeyboardInterrupt:  # between two trials: what is known by then is told
            self.lab.is_interrupted = True
        return self._result(search, bench, span)

    # -- diagnoses -------------------------------------------------------------------------------

    def _first(self) -> Case:
        budget_s = None
        if self.order.budget_s * _DIAGNOSIS_SHARE < 120.0:
            budget_s = self.order.budget_s * _DIAGNOSIS_SHARE
        case = self._diagnosed(Arm(), budget_s)
        if case is None:
            raise NotMeasurable("nothing could be measured of this command")
        if not any(one.step.steps for one in case.facts.run.trainers):
            raise NotMeasurable(
                f"no step of a training was seen: {case.facts.run.absence or 'nobody trained'}"
            )
        return case

    def _again(self, arm: Arm) -> Case | None:
        """Diagnose the training under what is kept, with less of a budget."""
        start_s = _start_s(self.diagnoses[0][0])
        return self._diagnosed(arm, 2 * start_s + _AGAIN_S)

    def _diagnosed(self, arm: Arm, budget_s: float | None) -> Case | None:
        """Return the case under an arm; None where its training could not be watched."""
        folder = self.lab.folder / "diagnoses" / f"{len(self.diagnoses) + 1}"
        if (folder / FACTS_FILE).is_file():
            facts = stored.load(folder / FACTS_FILE)
        else:
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            own = replace(
                self.lab, folder=folder, done=[], settings=arm.settings, extra=arm.environment
            )
            ask = Ask(budget_s, self.order.steps, self.order.horizon, native=not arm.settings)
            try:
                facts = measure(own, ask, wishes if not arm.settings else lambda _: ())
            except NotMeasurable:
                if not self.diagnoses:
                    raise
                return None
            finally:
                self.lab.is_interrupted = self.lab.is_interrupted or own.is_interrupted
            if own.is_interrupted:
                (folder / FACTS_FILE).unlink(missing_ok=True)  # half of it is no basis
        facts = replace(facts, run=replace(facts.run, id=self.lab.folder.name))
        diagnosis = judge(facts)
        self.diagnoses.append((facts, diagnosis))
        return Case(facts, diagnosis.findings, self.lab.environ, arm.settings)

    # -- the result ------------------------------------------------------------------------------

    def _result(self, search: Search, bench: Bench, span: Span) -> Tuning:
        confirmed = self._confirmed(search, bench)
        gain = confirmed.gain if confirmed is not None else None
        plan = self._plan(search, confirmed)
        tried = tuple(search.tried)
        if plan is None:
            why = f"the whole plan was not confirmed: {_said(confirmed)}"
            tried = tuple(
                replace(one, word="rejected", because=why) if one.word == "kept" else one
                for one in tried
            )
        last = self.diagnoses[-1] if len(self.diagnoses) > 1 and plan is not None else None
        sameness = search.sameness if plan is not None else Sameness("identical")
        return Tuning(
            baseline=self.diagnoses[0],
            tuned=last,
            tried=tried,
            plan=plan,
            gain=gain,
            run_gain=None if gain is None else of_run(gain, self.diagnoses[0][0]),
            word=confirmed.word if confirmed is not None else "no difference",
            runs=tuple(bench.runs),
            noise=noise(bench.runs),
            sameness=sameness,
            pays_back_steps=_pays_back(search, confirmed) if plan is not None else None,
            minimum_effect=MINIMUM_EFFECT,
            span={
                "warm_up": span.warm_up,
                "steps": span.steps,
                "seconds": span.seconds,
                "holds_epoch": span.holds_epoch,
            },
            not_tried=search.not_tried,
            notes=(*search.notes, *_busy(bench)),
        )

    def _confirmed(self, search: Search, bench: Bench) -> Confirmed | None:
        if not search.kept:
            return None
        reserve = 2 * bench.about_s
        return confirm(bench, Arm(), search.arm, lambda: time.monotonic() + reserve < self.until_s)

    def _plan(self, search: Search, confirmed: Confirmed | None) -> Plan | None:
        if confirmed is None or confirmed.gain is None or confirmed.word != "faster":
            return None
        facts = self.diagnoses[0][0]
        return plan_of(
            search.kept,
            self._environment,
            confirmed.gain,
            [one for one in confirmed.runs if one.arm == search.arm],
            search.sameness,
            fingerprint(facts.run),
            facts.run.command,
        )

    def _environment(self, knob: str, value: Any) -> Mapping[str, str]:
        return catalogue.load(knob).environment(value, self.lab.environ)


def _snippet(knob: str, value: Any) -> str:
    return catalogue.load(knob).snippet(value)


def _start_s(facts: Facts) -> float:
    part = facts.run.phases.get("start_up")
    return (part.ns or 0) / 1e9 if part is not None and part.ns else 5.0


def _said(confirmed: Confirmed | None) -> str:
    if confirmed is None:
        return "nothing was kept"
    if confirmed.because is not None:
        return confirmed.because
    return Verdict(confirmed.word, confirmed.gain).says


def _pays_back(search: Search, confirmed: Confirmed | None) -> int | None:
    extra = [one.extra_start_s for one in search.kept]
    if confirmed is None or confirmed.gain is None or any(one is None for one in extra):
        return None
    base = next((one for one in confirmed.runs if not one.arm.settings), None)
    total = math.fsum(one for one in extra if one is not None)
    return pays_back(total, base, Verdict(confirmed.word, confirmed.gain))


def _busy(bench: Bench) -> tuple[str, ...]:
    shares = [one.others_share for one in bench.runs if one.others_share is not None]
    most = max(shares, default=0.0)
    if most < DISTURBED:
        return ()
    return (f"other programs used up to {most:.0%} of the cores during these runs",)
