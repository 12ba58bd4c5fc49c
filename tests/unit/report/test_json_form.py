"""The JSON of a run: the contract's keys, null for what is missing, no reason left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotlap.report.json_form import to_json
from hotlap.values.phase import RUN_PHASES, STEP_PHASES, WORKER_SPLIT
from unit.report.gallery import RECORDS, summary


def _form(name: str) -> dict[str, Any]:
    form: dict[str, Any] = json.loads(json.dumps(to_json(summary(name)), allow_nan=False))
    return form


@pytest.mark.parametrize("name", RECORDS)
def test_the_contract_holds_for_every_kind_of_run(name: str) -> None:
    form = _form(name)
    assert form["format"] == 1
    assert form["report"] == "run"
    assert set(form["run"]) == {"wall_ns", "phases", "horizon"}
    assert tuple(form["run"]["phases"]) == RUN_PHASES
    assert set(form["run"]["horizon"]) == {"steps", "source"}
    assert {"median_ns", "steps", "phases"} <= set(form["step"])
    assert tuple(form["step"]["phases"]) == STEP_PHASES
    assert set(form["workers"]) == {"split", "knee"}
    assert tuple(form["workers"]["split"]) == WORKER_SPLIT
    parts = [*form["run"]["phases"].values(), *form["step"]["phases"].values()]
    assert all(set(part) == {"ns", "share"} for part in parts)
    assert all(set(one) == {"what", "because"} for one in form["not_measured"])
    assert all(one["because"] for one in form["not_measured"])


@pytest.mark.parametrize("name", RECORDS)
def test_what_takes_an_experiment_is_absent(name: str) -> None:
    assert not {"verdict", "ceilings", "noise_floor", "findings", "trials"} & set(_form(name))


def test_values_are_those_of_the_summary() -> None:
    form = _form("workers")
    assert form["run"]["wall_ns"] == sum(part["ns"] for part in form["run"]["phases"].values())
    assert form["run"]["horizon"] == {"steps": 400, "source": "observed"}
    assert form["step"]["phases"]["data_wait"]["share"] == pytest.approx(0.6, abs=0.01)
    assert form["workers"]["split"]["cpu"] == pytest.approx(6.4 / 10.5)
    assert sum(form["workers"]["split"].values()) == pytest.approx(1.0)
    assert form["machine"]["cpu_share"] > 0.9
    assert [one["role"] for one in form["loaders"]] == ["training", "evaluation"]


def test_missing_is_null_with_a_reason() -> None:
    form = _form("killed")
    assert form["run"]["phases"]["shut_down"] == {"ns": None, "share": None}
    assert form["run"]["horizon"]["steps"] is None
    assert form["step"]["phases"]["transfer"] == {"ns": None, "share": None}
    assert form["workers"]["knee"] is None
    reasons = {one["what"] for one in form["not_measured"]}
    assert {"shut_down", "horizon", "transfer", "workers.knee"} <= reasons
    assert form["exit_code"] == -9
    assert len(form["faults"]) == 1


def test_without_a_trainer_no_figure_is_zero() -> None:
    form = _form("absent")
    assert form["step"]["steps"] is None
    assert form["step"]["median_ns"] is None
    assert form["ranks"] == []
    assert form["absence"]


def test_touches_are_grouped() -> None:
    touches = _form("plain")["touches"]
    assert [one["kind"] for one in touches["syncs"]] == ["item"]
    assert [one["kind"] for one in touches["housekeeping"]] == ["torch.save", "print"]
    assert touches["syncs"][0]["place"] == {"file": "train.py", "line": 61, "function": "main"}
    assert [one["kind"] for one in _form("cuda")["touches"]["moves"]] == ["to"]


def test_every_rank_is_there() -> None:
    ranks = _form("ranks")["ranks"]
    assert [one["rank"] for one in ranks] == [0, 1]
    assert ranks[1]["step"]["phases"]["data_wait"]["share"] == pytest.approx(0.5, abs=0.01)
