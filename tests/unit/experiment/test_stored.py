"""Facts survive the way to a file and back, whatever is missing in them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from hotlap.errors import UnreadableRun
from hotlap.experiment.stored import from_json, load, packed, save, to_json, unpacked
from hotlap.values.facts import (
    Facts,
    Measured,
    Missing,
    Setting,
    SourceLine,
    WhatIf,
    WorkerPoint,
)
from hotlap.values.record import Place
from hotlap.values.summary import (
    LoaderSummary,
    MachineSummary,
    Part,
    ProcessSummary,
    RunSummary,
    StepSummary,
    TouchSummary,
)
from hotlap.values.trial import OperatorEntry, ProfileEntry

PLACE = Place("train.py", 12, "main")


def _run() -> RunSummary:
    step = StepSummary("optimizer", 90, 80, 10, 1.0, 5, 4, 9, {"forward": Part(3, 0.6)}, None, 0.9)
    loader = LoaderSummary(
        0, "D", PLACE, "training", 4, 2, 50, 7, None, {"cpu": Part(None, None)}, True, None, 5, None
    )
    touch = TouchSummary("sync", "item", PLACE, 3, 0.5, 12.5, 0.01)
    trainer = ProcessSummary(
        1, "host", 0, 0, 1, "2.4", "cpu", {"steps": Part(9, 1.0)}, step, (loader,), (touch,)
    )
    machine = MachineSummary(
        facts={"cpus": [0, 3], "odd": {1: "one"}, "tuple": (1, (2, 3))},
        gpus=({"name": "g", "at": [1]},),
    )
    return RunSummary(
        id="r",
        command=("python", "train.py"),
        hotlap_version="0",
        started="2026-01-01T00:00:00+00:00",
        finished=True,
        exit_code=0,
        wall_ns=10**12,
        phases={"steps": Part(1, 0.1), "compile": Part(None, None)},
        horizon_steps=None,
        horizon_source="unknown",
        trainers=(trainer,),
        machine=machine,
        standing_out=("a sentence",),
        not_measured=(("x", "because"),),
        faults=(),
        absence=None,
    )


def full() -> Facts:
    """Return facts in which every field holds something."""
    entry = ProfileEntry("trainer", "other", PLACE, "x.item()", (PLACE,), "t.f", 5, 50, 1, 2, None)
    return Facts(
        run=_run(),
        whole_run=True,
        profile=Measured((entry,), "watch"),
        source={"train.py:12": SourceLine(PLACE, "x.item()", (3, 5), 1, True)},
        operators=Measured((OperatorEntry(None, "forward", "aten::mm", 2.0, 3.5),), "operators"),
        step_series=(1, 2, 3),
        noise=Measured(0.02, "two windows", 0.01, 0.03),
        compute_per_s=Missing("no replay"),
        loader_per_s=Measured(10.0, "drain", 9.0, 11.0),
        samples_per_step=8.0,
        curve=(WorkerPoint(2, 10.0, 9.0, 11.0),),
        sample_ns={"p50": 1, "max": 4},
        settings=(Setting("num_workers", [1, "a"], PLACE),),
        defaults={"anomaly": False, "nothing": None, "~odd": 1},
        counts={"forwards": math.inf},
        what_ifs=(WhatIf("loader_workers", 2, 1.5, 1.4, 1.6, True),),
        trials=({"name": "watch", "wall_ns": 5},),
        not_measured=(("fetch", "no loader"),),
    )


def test_facts_come_back_as_they_were() -> None:
    assert from_json(to_json(full())) == full()
    assert from_json(to_json(Facts(_run()))) == Facts(_run())


def test_changes_of_older_facts_are_known_by_their_new_names() -> None:
    old = replace(full(), what_ifs=(WhatIf("torch_threads", 2, 1.5, 1.4, 1.6, True),))
    assert [one.change for one in from_json(to_json(old)).what_ifs] == ["intra_op_threads"]


def test_kinds_of_sequences_and_tables_come_back_as_they_were() -> None:
    for value in (
        [1, [2]],
        (1, (2,)),
        {1: 2},
        {"a": [1]},
        {"~": 1},
        {"~list": (1,)},
        frozenset("a"),
    ):
        again = unpacked(json.loads(json.dumps(packed(value))))
        assert again == value
        assert type(again) is type(value)


def test_a_file_is_whole(tmp_path: Path) -> None:
    save(full(), tmp_path / "facts.json")
    assert load(tmp_path / "facts.json") == full()
    assert [path.name for path in tmp_path.iterdir()] == ["facts.json"]


def test_fields_that_are_not_known_are_left_out_and_missing_ones_have_their_default() -> None:
    raw = json.loads(to_json(full()))
    raw["facts"]["of_a_newer_version"] = 1
    del raw["facts"]["curve"]
    assert from_json(json.dumps(raw)).curve == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2, "facts": {}}', '{"format": 1}'])
def test_what_holds_no_facts_is_refused_in_words(text: str) -> None:
    with pytest.raises(UnreadableRun, match="facts"):
        from_json(text)


def test_a_missing_file_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRun, match="cannot be read"):
        load(tmp_path / "facts.json")


def test_what_is_no_value_is_refused_when_written() -> None:
    with pytest.raises(TypeError, match="Path"):
        packed({"a": Path("x")})
