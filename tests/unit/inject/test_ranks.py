"""Ranks that agree on a step, and the end of a script that will not end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hotlap.inject.conditions import stop
from hotlap.inject.conditions.ranks import Ranks

SECOND = 1_000_000_000


def pair(run: Path) -> tuple[Ranks, Ranks]:
    """Return two ranks of one host."""
    return Ranks(run, 0, 2, 2), Ranks(run, 1, 2, None)


def test_one_rank_ends_when_its_time_is_over(tmp_path: Path) -> None:
    alone = Ranks(tmp_path, 0, 1, None)
    assert not alone.ended("window1", 5, False, SECOND)
    assert alone.ended("window1", 6, True, SECOND)
    assert list(tmp_path.iterdir()) == []


def test_both_end_at_the_step_that_rank_0_said(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    # Rank 1 is ahead with its clock; that ends nothing.
    assert not second.ended("window1", 9, True, SECOND)
    assert not first.ended("window1", 9, False, SECOND)
    answers = [
        (first.ended("window1", step, True, SECOND), second.ended("window1", step, False, SECOND))
        for step in range(10, 15)
    ]
    assert answers == [(False, False)] * 2 + [(True, True)] * 3


def test_short_steps_get_a_wider_margin(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    ended = [
        step
        for step in range(100)
        if first.ended("stop", step, True, 10_000_000) | second.ended("stop", step, False, 10**7)
    ]
    assert ended[0] == 25


def test_other_stretches_are_not_concerned(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    first.ended("window1", 3, True, SECOND)
    assert not second.ended("window2", 50, True, SECOND)


def test_what_a_rank_said_that_is_gone_counts_no_more(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    first.ended("stop", 3, True, SECOND)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (said,) = tmp_path.iterdir()
    said.write_text(f"{gone.pid} 5")
    assert not second.ended("stop", 50, True, SECOND)
    said.write_text(f"{os.getpid()} 5")
    assert second.ended("stop", 50, False, SECOND)


def test_ranks_of_several_hosts_end_by_count_only(tmp_path: Path) -> None:
    far = Ranks(tmp_path, 0, 16, 8)
    assert far.by_count_only
    assert not far.ended("window1", 10**6, True, SECOND)


class Left(Exception):
    """The process would have been left."""


def test_the_exit_is_raised_again_and_then_the_process_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes = []

    def leave(code: int) -> None:
        codes.append(code)
        raise Left

    completed = []
    monkeypatch.setattr(os, "_exit", leave)
    ending = stop.Stop(lambda: completed.append(True))
    for _ in range(1 + stop.PATIENCE):
        with pytest.raises(SystemExit) as raised:
            ending.at_hook()
        assert raised.value.code == 0
    assert (codes, completed) == ([], [])
    with pytest.raises(Left):
        ending.at_hook()
    assert (codes, completed) == ([0], [True])


def test_after_the_grace_time_the_next_hook_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(_code: int) -> None:
        raise Left

    now = [100.0]
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    ending = stop.Stop(lambda: None)
    with pytest.raises(SystemExit):
        ending.at_hook()
    now[0] += stop.GRACE_S + 1
    with pytest.raises(Left):
        ending.at_hook()


def test_an_exception_handler_lets_it_pass() -> None:
    assert not issubclass(stop.TrialEnded, Exception)
