"""What trainings do to their batches and to those who watch them, and how a trial bears it."""

from __future__ import annotations

import functools
import os

import pytest

from hotlap.values.trial import WindowPlan, WindowResult
from process.trial_runs import Trial, trial, window

QUICK = "compute=1,blocked=1,cpu=0"
WINDOWS = (
    window("warm_up", 4),
    window("baseline", 6),
    window("replay", 30),
    window("drain", 8),
    window("workers", 6, workers=2),
)


@functools.cache
def of(*words: str) -> Trial:
    """Return the trial of a training with this trouble, through all kinds of windows."""
    return trial(["known_cost.py", "--plant", QUICK, *words], *WINDOWS)


def kind(found: Trial, name: str) -> WindowResult:
    """Return the window of a kind."""
    (one,) = [one for one in found.windows if one.kind == name]
    return one


def ended_well(found: Trial, out: bytes = b"") -> None:
    """Assert that the script was stopped cleanly and nothing of ours failed."""
    assert (found.result.code, found.result.stdout, found.result.stderr) == (0, out, b"")
    assert found.trainer.faults == ()
    assert found.trainer.end_ns is not None
    assert found.record.damage == ()
    assert not any(os.path.exists(f"/proc/{p.pid}") for p in found.record.processes)


def together(trouble: str) -> pytest.MarkDecorator:
    """Send the tests of one trouble to one worker: they share its trial."""
    return pytest.mark.xdist_group(f"trouble {trouble}")


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(name, marks=together(name))
        for name in ("in_place", "takes_out", "lengths", "two_loaders", "stream")
    ],
)
def test_all_windows_come_about(trouble: str) -> None:
    found = of("--trouble", trouble, "--workers", "2")
    ended_well(found)
    assert [one.kind for one in found.windows] == [one.kind for one in WINDOWS]
    assert [one.ended_by for one in found.windows] == ["steps"] * 5
    assert [one.steps for one in found.windows] == [4, 6, 30, 0, 0]
    loaders = 2 if trouble == "two_loaders" else 1
    assert [one.batches for one in found.windows[:3]] == [4 * loaders, 6 * loaders, 30 * loaders]
    assert all(one.samples == 4 * one.batches for one in found.windows)
    assert kind(found, "replay").split == {}  # no worker made a batch in it


@together("in_place")
def test_a_batch_changed_in_place_is_given_out_as_it_was() -> None:
    found = of("--trouble", "in_place", "--workers", "2")
    assert any("in place" in note for note in kind(found, "replay").notes)
    # Batches that came twice were the same before the step changed them again.
    seen = [tuple(one) for one in found.log["seen"]]
    replayed = seen[-30:]
    assert len(set(replayed)) < len(replayed)
    assert set(replayed[-20:]) <= set(seen[:20])


@together("takes_out")
def test_a_batch_that_is_emptied_needs_no_clone() -> None:
    found = of("--trouble", "takes_out", "--workers", "2")
    assert not any("in place" in note for note in kind(found, "replay").notes)


@together("lengths")
def test_all_lengths_are_replayed() -> None:
    found = of("--trouble", "lengths", "--workers", "2")
    assert any("different shapes" in note for note in kind(found, "replay").notes)


@together("two_loaders")
def test_loaders_that_are_zipped_are_drained_together() -> None:
    found = of("--trouble", "two_loaders", "--workers", "2")
    assert any("2 loaders" in note for note in kind(found, "replay").notes)
    assert any("2 loaders" in note for note in kind(found, "drain").notes)
    assert set(found.log["epochs"]) <= {16}


@together("stream")
def test_a_stream_has_no_length_and_its_copies_are_named() -> None:
    found = of("--trouble", "stream", "--workers", "2")
    assert any("length of an epoch" in note for note in kind(found, "replay").notes)
    assert any("stream" in note for note in kind(found, "workers").notes)


def test_without_a_loader_the_windows_say_so() -> None:
    found = of("--trouble", "no_loader")
    ended_well(found)
    assert [one.ended_by for one in found.windows[:2]] == ["steps"] * 2
    for one in found.windows[2:]:
        assert one.ended_by.startswith("failed: no batch of a training loader was seen")
        assert one.batches == 0


def test_a_bare_except_does_not_keep_the_script_alive() -> None:
    found = of("--trouble", "swallow")
    ended_well(found)
    assert found.log["swallowed"] == 1  # the first at the end of a step, the next at the loader


def test_a_bare_except_around_everything_is_left_at_last() -> None:
    found = of("--trouble", "swallow_all")
    assert (found.result.code, found.result.stdout, found.result.stderr) == (0, b"", b"")
    assert found.result.log is None
    assert found.trainer.end_ns is not None  # the record is complete all the same
    assert len(found.windows) == 5


def test_a_script_that_catches_the_exit_goes_on_as_it_likes() -> None:
    found = of("--trouble", "catch")
    ended_well(found, b"caught\n")
    assert found.log["caught"] == 0


@pytest.mark.parametrize("more", [(), ("--persistent",)])
def test_finally_runs_and_no_worker_stays(more: tuple[str, ...]) -> None:
    found = of("--trouble", "cleanup", "--workers", "2", *more)
    ended_well(found)
    assert len(found.log["cleaned"]) == 1
    pids = found.log["workers_seen"]
    assert len(pids) >= 2
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_a_data_set_too_short_to_measure_says_so() -> None:
    found = of("--samples", "12", "--workers", "2")
    ended_well(found)
    drained = kind(found, "drain")
    assert (drained.ended_by, drained.batches) == ("exhausted", 0)
    assert any("too few" in note for note in drained.notes)
    assert kind(found, "replay").steps == 30
    assert set(found.log["epochs"]) == {3}


def test_a_data_set_shorter_than_the_window_is_gone_through_again() -> None:
    found = of("--samples", "24")
    ended_well(found)
    drained = kind(found, "drain")
    assert (drained.ended_by, drained.batches) == ("steps", 8)
    assert any("gone through" in note for note in drained.notes)


def test_a_run_that_is_over_writes_what_it_had() -> None:
    found = trial(
        ["known_cost.py", "--plant", QUICK, "--epochs", "1"],
        window("warm_up", 4),
        window("baseline", 100),
        window("drain", 8),
    )
    ended_well(found)
    assert [one.kind for one in found.windows] == ["warm_up", "baseline"]
    assert found.windows[1].ended_by == "run ended"
    assert found.windows[1].steps == 16 - 1 - 4


def test_a_trial_without_windows_stops_by_time() -> None:
    found = trial(["known_cost.py", "--plant", QUICK], stop_after_s=3.0)
    ended_well(found)
    assert found.windows == ()
    assert found.trainer.end_ns is not None
    assert found.trainer.end_ns - found.trainer.start_ns >= 3e9


def test_a_killed_process_loses_no_window_that_was_over() -> None:
    found = trial(
        ["known_cost.py", "--plant", QUICK, "--trouble", "killed"],
        window("warm_up", 4),
        window("baseline", 6),
        window("baseline", 100),
    )
    assert found.result.code == -9
    assert [one.kind for one in found.windows] == ["warm_up", "baseline"]


@pytest.mark.slow
def test_lightning_validates_first_and_its_training_loader_is_drained() -> None:
    found = trial(["lightning_style.py"], *WINDOWS)
    assert found.result.code == 0, found.result.stderr.decode()[-3000:]
    assert [one.kind for one in found.windows] == [one.kind for one in WINDOWS]
    assert [one.ended_by for one in found.windows] == ["steps"] * 5
    assert found.trainer.faults == ()
    assert kind(found, "replay").split == {}
    (training,) = [one.ordinal for one in found.trainer.loaders if one.role == "training"]
    drained = kind(found, "drain")
    inside = [
        one.loader
        for one in found.trainer.fetches
        if drained.begin_ns <= one.begin_ns and one.end_ns <= drained.end_ns
    ]
    assert set(inside) == {training}


def test_a_failure_of_ours_ends_the_trial_and_harms_nothing() -> None:
    found = trial(
        ["known_cost.py", "--plant", QUICK, "--trouble", "cleanup"],
        window("warm_up", 2),
        WindowPlan("baseline", "many", 60.0),  # type: ignore[arg-type] # what cannot be compared
    )
    assert (found.result.code, found.result.stdout, found.result.stderr) == (0, b"", b"")
    assert len(found.log["cleaned"]) == 1
    assert [one.site for one in found.trainer.faults] == ["conditions"]
    assert [one.kind for one in found.windows] == ["warm_up", "baseline"]
    assert found.windows[1].ended_by.startswith("failed: TypeError")
    assert found.trainer.end_ns is not None


def test_a_kind_of_window_that_is_unknown_says_so() -> None:
    found = trial(["known_cost.py", "--plant", QUICK], window("siesta", 2), window("warm_up", 2))
    ended_well(found)
    assert [one.ended_by for one in found.windows] == [
        "failed: this hotlap has no windows of kind 'siesta'",
        "steps",
    ]


@pytest.mark.slow
def test_spawned_workers_are_drained_like_others() -> None:
    found = trial(["contexts.py", "--context", "spawn"], *WINDOWS)
    assert (found.result.code, found.result.stderr) == (0, b"")
    assert [one.ended_by for one in found.windows] == ["steps"] * 5
    drained, other = found.windows[3:]
    assert (drained.batches, other.batches) == (8, 6)
    assert (drained.split["batches"] or 0) > 0
    assert (other.split["batches"] or 0) > 0
