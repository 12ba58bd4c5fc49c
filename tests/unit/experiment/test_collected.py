"""What the garbage collector took of a training: nothing of start-up, which nobody can spare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotlap.experiment.watched import counts
from unit.account.records import SECOND, Trainer


def counted(collector: dict[str, Any]) -> dict[str, float]:
    process = Trainer().begin(other=SECOND).steps(20).farewell().build()
    return counts(replace(process, collector=collector))


def test_collections_while_modules_are_imported_do_not_count() -> None:
    phases = {
        "start_up": {"collections": 300, "ns": 900},
        "forward": {"collections": 2, "ns": 30},
        "epoch_edge": {"collections": 1, "ns": 70},
    }
    found = counted({"by_phase": phases, "longest_ns": 70})
    assert (found["gc_ns"], found["collections"], found["gc_longest_ns"]) == (100, 3, 70)


def test_where_nobody_listened_nothing_is_told() -> None:
    assert "gc_ns" not in counted({})
