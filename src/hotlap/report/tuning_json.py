"""A tuning as JSON, format 1. What was not measured is null."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from hotlap.report.diagnosis_json import diagnosis_json
from hotlap.report.plain import plain
from hotlap.values.arm import ArmRun
from hotlap.values.facts import Facts
from hotlap.values.finding import Diagnosis
from hotlap.values.plan import Choice
from hotlap.values.tuning import Tried, Tuning

FORMAT: Final = 1


def tuning_json(tuning: Tuning) -> dict[str, Any]:
    """Return a tuning as an object that ``json.dumps(…, allow_nan=False)`` takes.

    ``baseline`` and ``tuned`` hold what the diagnosis' own JSON holds under the same keys;
    ``tuned`` is null where there is no plan, or no diagnosis under it.
    """
    facts, diagnosis = tuning.baseline
    choices = tuning.plan.choices if tuning.plan is not None else ()
    form = {
        "format": FORMAT,
        "report": "tuning",
        "hotlap_version": facts.run.hotlap_version,
        "id": facts.run.id,
        "command": list(facts.run.command),
        "baseline": _account(facts, diagnosis),
        "tuned": None if tuning.tuned is None else _account(*tuning.tuned),
        "comparison": {
            "word": tuning.word,
            "ratio": None if tuning.gain is None else asdict(tuning.gain),
            "whole_run": None if tuning.run_gain is None else asdict(tuning.run_gain),
            "minimum_effect": tuning.minimum_effect,
            "steps": tuning.span.get("steps"),
            "warm_up": tuning.span.get("warm_up"),
            "holds_epoch": tuning.span.get("holds_epoch"),
        },
        "plan": [_choice(one) for one in choices],
        "rejected": [_rejected(one) for one in tuning.tried if one.word == "rejected"],
        "offered": [_offered(one) for one in tuning.tried if one.word == "offered"],
        "not_tried": list(tuning.not_tried),
        "equivalence": {
            "word": tuning.sameness.word,
            "checks": [asdict(one) for one in tuning.sameness.checks],
        },
        "pays_back_after_steps": tuning.pays_back_steps,
        "next_ceiling": (tuning.tuned or tuning.baseline)[1].next_ceiling,
        "noise_floor": {"ratio": tuning.noise},
        "notes": list(tuning.notes),
        "runs": [_run(one) for one in tuning.runs],
    }
    whole: dict[str, Any] = plain(form)
    return whole


def _account(facts: Facts, diagnosis: Diagnosis) -> dict[str, Any]:
    whole = diagnosis_json(facts, diagnosis)
    kept = ("run", "step", "verdict", "ceilings", "findings")
    return {key: whole[key] for key in kept}


def _choice(one: Choice) -> dict[str, Any]:
    return {
        "knob": one.knob,
        "value": one.value,
        "numerics": one.numerics,
        "predicted": asdict(one.predicted),
        "measured": None if one.measured is None else asdict(one.measured),
        "acted": bool(one.proof),
        "proof": one.proof,
        "environment": dict(one.environment),
        "code": one.snippet,
    }


def _rejected(one: Tried) -> dict[str, Any]:
    return {
        "knob": one.knob,
        "value": one.value,
        "because": one.because,
        "numerics": one.numerics,
        "beside": dict(one.beside),
        "predicted": asdict(one.predicted),
        "measured": None if one.measured is None else asdict(one.measured),
    }


def _offered(one: Tried) -> dict[str, Any]:
    return {
        "knob": one.knob,
        "value": one.value,
        "numerics": one.numerics,
        "measured": None if one.measured is None else asdict(one.measured),
        "because": one.because,
    }


def _run(one: ArmRun) -> dict[str, Any]:
    return {
        "arm": dict(one.arm.settings),
        "environment": dict(one.arm.environment),
        "steps": one.steps,
        "total_ns": one.total_ns if one.spans_ns else None,
        "spans_ns": list(one.spans_ns),
        "start_s": one.start_s,
        "failed": one.failed,
    }
