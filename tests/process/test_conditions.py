"""Windows of a trial: what they count, what they clock, and how the script ends."""

from __future__ import annotations

import pytest

from hotlap.values.phase import ACCOUNTS
from hotlap.values.trial import WindowResult
from process.trial_runs import Trial, trial, window

DATA_WAIT = ACCOUNTS.index("data_wait")


def kinds(found: Trial) -> list[str]:
    """Return the kinds of the windows that were measured, in order."""
    return [one.kind for one in found.windows]


def of_kind(found: Trial, kind: str) -> WindowResult:
    """Return the one window of a kind."""
    (one,) = [one for one in found.windows if one.kind == kind]
    return one


@pytest.mark.parametrize("workers", [0, 2])
def test_windows_follow_each_other_and_the_script_ends_well(workers: int) -> None:
    found = trial(
        ["known_cost.py", "--workers", str(workers), "--plant", "compute=1,blocked=1,cpu=1"],
        window("warm_up", 3),
        window("baseline", 5),
        window("replay", 20),
        window("drain", 10),
    )
    assert (found.result.code, found.result.stderr) == (0, b"")
    assert kinds(found) == ["warm_up", "baseline", "replay", "drain"]
    assert [one.steps for one in found.windows] == [3, 5, 20, 0]
    assert [one.ended_by for one in found.windows] == ["steps"] * 4
    assert [one.batches for one in found.windows] == [3, 5, 20, 10]
    assert [one.samples for one in found.windows] == [12, 20, 80, 40]
    assert [len(one.step_ns) for one in found.windows] == [3, 5, 20, 10]
    # One step before the windows, and two before the replay whose batches may have been there.
    assert found.log["optimizer_steps"] == 1 + 3 + 5 + 2 + 20
    assert set(found.log["epochs"]) <= {16}
    assert found.trainer.faults == ()
    for one in found.windows:
        assert one.begin_ns < one.end_ns
    for one in found.windows[:3]:
        steps = sum(one.accounts[: ACCOUNTS.index("evaluation")])
        assert sum(one.step_ns) == steps
    replay = of_kind(found, "replay")
    assert replay.split == {}  # no worker made a batch in it
    waits = [
        tick.accounts[DATA_WAIT]
        for tick in found.trainer.ticks
        if replay.begin_ns < tick.end_ns <= replay.end_ns
    ]
    assert len(waits) == 20
    # Preparing a batch sleeps 4 ms and computes 4 more.
    assert sorted(waits)[10] < 4e6


def test_a_replay_gives_batches_out_again() -> None:
    found = trial(
        ["known_cost.py", "--plant", "compute=0,blocked=0,cpu=0"],
        window("warm_up", 6),
        window("replay", 40),
    )
    seen = [tuple(one) for one in found.log["seen"]]
    # The first loader is known to train after the first step; the batches of 2-7 are kept.
    assert set(seen[9:]) == set(seen[1:7])
    assert found.log["epochs"] == [16, 16, 16]


def test_a_loader_is_drained_after_the_very_first_step() -> None:
    found = trial(
        ["known_cost.py", "--workers", "2", "--plant", "compute=0,blocked=1,cpu=0"],
        window("drain", 6),
        window("workers", 4, workers=1),
    )
    assert [one.ended_by for one in found.windows] == ["steps"] * 2
    assert [one.batches for one in found.windows] == [6, 4]
    assert found.log["optimizer_steps"] == 1
