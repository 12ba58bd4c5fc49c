"""A diagnosis as JSON: the names of the contract, and null for what was not measured."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from hotlap.report.diagnosis_json import diagnosis_json
from hotlap.values.facts import Missing
from hotlap.values.finding import BOUNDS, Bounds, Evidence
from hotlap.values.phase import RUN_PHASES, STEP_PHASES, WORKER_SPLIT
from unit.report.diagnosed import CASES, Case, finding


def _nullable(kind: str) -> dict[str, Any]:
    return {"type": [kind, "null"]}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


NUMBER = _nullable("number")
INTEGER = _nullable("integer")
TEXT = {"type": "string"}
INTERVAL = _object(low=NUMBER, high=NUMBER)
PART = _object(ns=INTEGER, share=NUMBER)
FINDING = _object(
    code={"type": "string", "pattern": "^[A-Z]+[0-9]{3}$"},
    name=TEXT,
    phase={"enum": [*STEP_PHASES, *RUN_PHASES, "memory"]},
    scope={"enum": ["step", "epoch", "run"]},
    status={"enum": ["suspected", "proven"]},
    severity={"enum": ["high", "medium", "low"]},
    recoverable_share=INTERVAL,
    predicted_speedup=INTERVAL,
    locations=_array(
        _object(file=TEXT, line={"type": "integer"}, function=TEXT, share=NUMBER),
    ),
    evidence=_array(_object(name=TEXT, value={}, unit=TEXT)),
    remedy=_object(
        kind={"enum": ["knob", "code", "environment"]},
        knobs=_array(TEXT),
        changes=TEXT,
    ),
    say=TEXT,
)
SCHEMA = _object(
    format={"const": 1},
    hotlap_version=TEXT,
    command=_array(TEXT),
    verdict=_object(bound={"enum": list(BOUNDS)}, headline=TEXT),
    run=_object(
        wall_ns=INTEGER,
        phases=_object(**dict.fromkeys(RUN_PHASES, PART)),
        horizon=_object(steps=INTEGER, source=TEXT),
    ),
    step=_object(
        median_ns=INTEGER,
        steps=INTEGER,
        phases=_object(**dict.fromkeys(STEP_PHASES, PART)),
    ),
    ceilings=_object(
        compute_per_s=NUMBER,
        loader_per_s=NUMBER,
        prep_per_s=NUMBER,
        fetch_per_s=NUMBER,
        unit={"const": "samples"},
    ),
    workers=_object(split=_object(**dict.fromkeys(WORKER_SPLIT, NUMBER)), knee=INTEGER),
    noise_floor=_object(ratio=NUMBER),
    findings=_array(FINDING),
    not_measured=_array(_object(what=TEXT, because=TEXT)),
    machine={"type": "object"},
    trials={"type": "array"},
)


def _form(case: Case) -> dict[str, Any]:
    form: dict[str, Any] = json.loads(
        json.dumps(diagnosis_json(case.facts, case.diagnosis), allow_nan=False)
    )
    return form


@pytest.mark.parametrize("name", CASES)
def test_the_form_keeps_its_contract(name: str) -> None:
    jsonschema.validate(_form(CASES[name]()), SCHEMA)


def test_the_schema_refuses_a_renamed_key() -> None:
    form = _form(CASES["two"]())
    form["findings"][0]["severity_"] = form["findings"][0].pop("severity")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(form, SCHEMA)


def test_figures_are_those_of_the_facts() -> None:
    form = _form(CASES["two"]())
    assert form["verdict"]["bound"] == "input"
    assert form["ceilings"]["compute_per_s"] == 8020.0
    assert form["ceilings"]["intervals"]["compute_per_s"] == {"low": 7900.0, "high": 8150.0}
    assert form["ceilings"]["fetch_per_s"] is None
    assert form["ceilings"]["origins"]["fetch_per_s"] is None
    assert form["workers"]["knee"] == 2
    assert [point["workers"] for point in form["workers"]["curve"]] == [0, 1, 2, 4]
    assert form["noise_floor"] == {"ratio": 0.012}
    assert form["step"]["median_ns"] == CASES["two"]().facts.run.trainers[0].step.median_ns
    assert form["run"]["horizon"] == {"steps": 400, "source": "observed"}
    assert form["trials"][1]["windows"][1]["kind"] == "replay"
    assert form["machine"]["cores_allowed"] == 2.0


def test_storage_and_the_end_of_an_epoch_are_figures_or_null() -> None:
    form = _form(CASES["stopped"]())
    assert form["storage"]["cold_per_s"] == pytest.approx(100.0)
    assert form["storage"]["warm_per_s"] == pytest.approx(400.0)
    assert form["storage"]["cold_blocked_share"] == pytest.approx(520 / 640)
    assert form["epoch_end"]["phases"]["checkpoint"]["ns"] == 400_000_000
    assert not form["epoch_end"]["whole"]
    plain = _form(CASES["two"]())
    assert plain["storage"] is None
    assert plain["epoch_end"] is None


def test_findings_keep_their_rank_and_say_how_bad_they_are() -> None:
    findings = _form(CASES["two"]())["findings"]
    assert [one["code"] for one in findings] == ["HL101", "HL402"]
    assert [one["severity"] for one in findings] == ["high", "medium"]
    assert findings[0]["locations"] == [
        {"file": "train.py", "line": 14, "function": "__getitem__", "share": 0.81}
    ]
    assert findings[0]["evidence"][3] == {"name": "cold reads", "value": None, "unit": "bytes"}
    assert findings[0]["remedy"]["knobs"] == ["loader_workers"]


def test_every_ceiling_that_is_null_has_a_reason() -> None:
    form = _form(CASES["undecided"]())
    reasons = {one["what"]: one["because"] for one in form["not_measured"]}
    for name in ("compute_per_s", "loader_per_s", "prep_per_s", "fetch_per_s"):
        assert form["ceilings"][name] is None
        assert reasons[f"ceilings.{name}"]
    assert form["noise_floor"]["ratio"] is None
    assert reasons["noise_floor.ratio"] == "no repeat was made"
    assert form["workers"]["knee"] is None
    assert "several numbers of workers" in reasons["workers.knee"]
    assert reasons["HL101"] == "the loader was not drained"
    assert reasons["replay"] == "batches change in place"


def test_a_reason_of_its_own_replaces_the_general_one() -> None:
    case = CASES["input_bound"]()
    facts = replace(
        case.facts,
        compute_per_s=Missing("no replay was made"),
        not_measured=(("compute_per_s", "the batch changes in place"),),
    )
    said = _form(Case(facts, case.diagnosis))["not_measured"]
    why = [one["because"] for one in said if one["what"] == "ceilings.compute_per_s"]
    assert why == ["the batch changes in place"]


def test_a_run_without_steps_has_null_figures() -> None:
    form = _form(CASES["nothing"]())
    assert form["step"]["median_ns"] is None
    assert form["findings"] == []
    assert form["verdict"]["bound"] == "unknown"
    assert form["absence"]


def test_what_json_has_no_number_for_is_null() -> None:
    case = CASES["input_bound"]()
    odd = finding(
        predicted_speedup=Bounds(1.1, float("inf")),
        evidence=(Evidence("ratio", float("nan"), ""), Evidence("types", {"b", "a"}, "")),
    )
    form = _form(Case(case.facts, replace(case.diagnosis, findings=(odd,))))
    assert form["findings"][0]["predicted_speedup"] == {"low": 1.1, "high": None}
    assert [one["value"] for one in form["findings"][0]["evidence"]] == [None, ["a", "b"]]
