"""Two ranks go through the windows of a trial together, and both end well."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.values.trial import WindowPlan
from process.style_runs import read_log
from process.trial_runs import Trial, trial, window
from ranks.test_ddp import ddp

pytestmark = pytest.mark.slow


def two_ranks(*windows: WindowPlan, stop_after_s: float | None = None) -> Trial:
    """Run two ranks as a trial."""

    def command(folder: Path) -> list[str]:
        return ddp(folder, "--plant", "getitem=1,forward=1,backward=1,straggle=3")

    return trial(
        [], *windows, env={"OMP_NUM_THREADS": "1"}, command=command, stop_after_s=stop_after_s
    )


def steps_of(found: Trial) -> list[int]:
    """Return how many steps each rank made."""
    return [process.ticks[-1].number for process in found.trainers]


def test_windows_that_end_by_time_end_at_the_same_step() -> None:
    found = two_ranks(
        window("warm_up", 3),
        window("baseline", 10**9, seconds=0.3),
        window("replay", 10),
        window("drain", 10, seconds=5),
    )
    assert found.result.code == 0, found.result.stderr.decode()[-3000:]
    first, second = found.trainers
    assert [first.rank, second.rank] == [0, 1]
    assert len(set(steps_of(found))) == 1
    for process in (first, second):
        kinds = [one.kind for one in process.windows_measured]
        assert kinds == ["warm_up", "baseline", "replay", "drain"]
        assert process.faults == ()
        # No log: the clean stop came before the script's own end.
        assert process.end_ns is not None
    pairs = zip(first.windows_measured, second.windows_measured, strict=True)
    assert all(a.steps == b.steps for a, b in pairs)
    assert first.windows_measured[1].ended_by == "seconds"
    assert first.windows_measured[1].steps >= 1
    assert read_log(found.result.folder / "ddp.json.0") is None


def test_both_stop_when_the_time_is_over() -> None:
    found = two_ranks(stop_after_s=1.0)
    assert found.result.code == 0, found.result.stderr.decode()[-3000:]
    assert len(found.trainers) == 2
    assert len(set(steps_of(found))) == 1
    assert read_log(found.result.folder / "ddp.json.0") is None
