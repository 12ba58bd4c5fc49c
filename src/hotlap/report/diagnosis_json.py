"""A diagnosis as JSON, format 1.

What the report of a run holds under ``run``, ``step``, ``workers``, ``loaders``, ``touches``,
``ranks`` and ``machine`` means the same here; those figures are of the watched trial.

What was not measured is null, with its reason under ``not_measured``. An empty list of findings
says that nothing is worth fixing; where that could not be told, ``verdict.bound`` is ``unknown``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from hotlap.report.epoch_end import epoch_end_json
from hotlap.report.json_form import NO_KNEE, to_json
from hotlap.report.limits import knee, limits, storage_rates
from hotlap.report.plain import plain
from hotlap.report.unmeasured import not_measured
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Diagnosis, Finding

FORMAT: Final = 1

_SHARED: Final = ("loaders", "touches", "ranks", "machine", "faults")
"""Keys whose values are those of the watched trial's own report."""


def diagnosis_json(facts: Facts, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as an object that ``json.dumps(…, allow_nan=False)`` takes.

    facts: what the experiments found out. diagnosis: what was concluded from just these facts.
    """
    run = to_json(facts.run)
    form = {
        "format": FORMAT,
        "report": "diagnosis",
        "hotlap_version": facts.run.hotlap_version,
        **{key: run[key] for key in ("id", "command", "started", "absence")},
        "verdict": _verdict(diagnosis),
        "run": {**run["run"], "whole": facts.whole_run},
        "step": {**run["step"], "samples_per_step": facts.samples_per_step},
        "ceilings": _ceilings(facts),
        "storage": _storage(facts),
        "epoch_end": epoch_end_json(facts),
        "workers": {
            "split": run["workers"]["split"],
            "knee": knee(facts.curve),
            "curve": [asdict(point) for point in facts.curve],
        },
        "noise_floor": {"ratio": diagnosis.noise_floor},
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "not_measured": [
            {"what": what, "because": because}
            for what, because in not_measured(facts, diagnosis)
            if (what, because) != NO_KNEE
        ],
        "what_ifs": [asdict(tried) for tried in facts.what_ifs],
        "trials": list(facts.trials),
        **{key: run[key] for key in _SHARED},
    }
    whole: dict[str, Any] = plain(form)
    return whole


def _verdict(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "bound": diagnosis.bound,
        "headline": diagnosis.headline,
        "next_ceiling": diagnosis.next_ceiling,
        "together": _bounds(diagnosis.together),
    }


def _ceilings(facts: Facts) -> dict[str, Any]:
    """Return the rates, each null where it was not measured, and where each comes from."""
    known = limits(facts)
    return {
        **{limit.key: limit.rate for limit in known},
        "unit": "samples",
        "intervals": {limit.key: {"low": limit.low, "high": limit.high} for limit in known},
        "origins": {limit.key: limit.origin or None for limit in known},
    }


def _storage(facts: Facts) -> dict[str, Any] | None:
    """Return what one reader reaches cold and warm; null where that was not compared."""
    rates = storage_rates(facts)
    if rates is None:
        return None
    return {
        "samples": rates.samples,
        "files": rates.files,
        "file_bytes": rates.file_bytes,
        "read_bytes": rates.read_bytes,
        "cold_per_s": rates.cold,
        "warm_per_s": rates.warm,
        "cold_blocked_share": rates.cold_blocked,
        "warm_blocked_share": rates.warm_blocked,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "phase": finding.phase,
        "scope": finding.scope,
        "status": finding.status,
        "severity": finding.severity,
        "recoverable_share": _bounds(finding.recoverable_share),
        "predicted_speedup": _bounds(finding.predicted_speedup),
        "locations": [asdict(location) for location in finding.locations],
        "evidence": [asdict(evidence) for evidence in finding.evidence],
        "remedy": {
            "kind": finding.remedy.kind,
            "knobs": list(finding.remedy.knobs),
            "changes": finding.remedy.changes,
        },
        "say": finding.say,
    }


def _bounds(bounds: Bounds) -> dict[str, float | None]:
    return {"low": bounds.low, "high": bounds.high}
