"""An epoch that is ended before its time: what the script does then is seen, and no more is lost.

The script's own log tells how many batches each epoch gave it.
"""

from __future__ import annotations

import functools

import pytest

from hotlap.values.phase import ACCOUNTS
from process.trial_runs import Trial, trial, window

BEFORE = 4


@functools.cache
def of(*words: str) -> Trial:
    """Return a trial whose first epoch of 250 batches is ended after a few steps."""
    known = ("known_cost.py", "--samples", "1000", "--evaluate", *words)
    cheap = ("--plant", "compute=0,blocked=0,cpu=0")
    found = trial(
        [*known, *cheap], window("warm_up", BEFORE), window("epoch_end", 3, 60.0), sample_hz=100.0
    )
    assert found.result.code == 0, found.result.stderr.decode()[-3000:]
    return found


def account(found: Trial, name: str) -> int:
    """Return what the window has of an account."""
    return found.windows[-1].accounts[ACCOUNTS.index(name)]


cases = pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, marks=pytest.mark.xdist_group(f"epoch end {at}"))
        for at, words in enumerate(
            [
                ("--workers", "0"),
                ("--workers", "2"),
                ("--workers", "2", "--persistent"),
                ("--trouble", "two_loaders"),
                ("--trouble", "two_loaders", "--workers", "1", "--persistent"),
            ]
        )
    ],
    ids="plain workers persistent zipped zipped_persistent".split(),
)


@cases
def test_the_epoch_ends_once_and_the_next_is_a_whole_one(words: tuple[str, ...]) -> None:
    found = of(*words)
    # The first step lies before all windows; the trial is stopped inside the second epoch.
    assert found.log["epochs"] == [1 + BEFORE]
    assert found.windows[-1].ended_by == "steps"
    assert found.windows[-1].steps == 3
    assert len(found.log["losses"]) == 1 + BEFORE + 3


@cases
def test_evaluation_and_checkpoint_are_seen(words: tuple[str, ...]) -> None:
    found = of(*words)
    assert found.log["saved"]
    assert account(found, "evaluation") > 0
    assert account(found, "checkpoint") > 0
    assert account(found, "epoch_edge") > 0


def test_without_a_loader_there_is_no_end_to_bring_on() -> None:
    found = of("--trouble", "no_loader")
    assert found.windows[-1].ended_by.startswith("failed: no batch of a training loader")
