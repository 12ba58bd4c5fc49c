"""The four ceilings of a training of known cost, against what the script itself clocked.

The script's clocks, not the planted milliseconds, are what we compare with: on a machine that
others use too a planted sleep takes longer, for both.
"""

from __future__ import annotations

import functools
import tempfile
from typing import Any

import pytest

from hotlap.experiment.ceilings import Ceilings, ceilings
from hotlap.values.facts import Measured, Missing
from hotlap.values.trial import WindowResult
from process.trial_runs import Trial, trial, window

BATCH = 4
NEAR = 0.1
CASES = [0, 1, 2]


@functools.cache
def of(workers: int, per: str = "step") -> tuple[Trial, list[dict[str, Any]]]:
    """Return a trial with replay and drain, and the batches as their makers clocked them."""
    view = tempfile.mkdtemp(prefix="view-")
    words = ["known_cost.py", "--workers", str(workers), "--per", per, "--view", view]
    words += ["--batch", str(BATCH), "--samples", "600"]
    found = trial(
        words,
        window("warm_up", 4),
        window("baseline", 12),
        window("replay", 40),
        window("drain", 80),
    )
    assert found.result.code == 0, found.result.stderr.decode()[-3000:]
    return found, found.batches(view)


def measured(found: Trial, workers: int) -> Ceilings:
    """Return the ceilings that its windows show."""
    return ceilings(found.windows, workers, cores=None, fetches=found.trainer.fetches)


def value(ceiling: Measured[float] | Missing) -> float:
    """Return a ceiling's value; a missing one fails the test with its reason."""
    assert isinstance(ceiling, Measured), ceiling
    return ceiling.value


def kind(found: Trial, name: str) -> WindowResult:
    """Return the window of a kind."""
    (one,) = [one for one in found.windows if one.kind == name]
    return one


def inside(items: list[dict[str, Any]], result: WindowResult) -> list[dict[str, Any]]:
    """Return the samples that were made in a window, whole batches as we count them or nearly."""
    return [
        one
        for one in items
        if result.begin_ns <= one["begin_ns"] and one["end_ns"] <= result.end_ns
    ]


def cases() -> pytest.MarkDecorator:
    """Make each number of workers a test, those of one number on one worker of pytest."""
    return pytest.mark.parametrize(
        "workers", [pytest.param(n, marks=pytest.mark.xdist_group(f"cost {n}")) for n in CASES]
    )


@cases()
def test_compute_is_what_the_script_clocked(workers: int) -> None:
    found, _ = of(workers)
    replay = kind(found, "replay")
    steps = found.log["steps"]
    ends = [one["end_ns"] for one in steps]
    own = [
        (one["end_ns"] - before, one["samples"])
        for before, one in zip(ends, steps[1:], strict=False)
        if replay.begin_ns < before and one["end_ns"] <= replay.end_ns
    ]
    assert len(own) >= 38
    clocked = sum(samples for _, samples in own) * 1e9 / sum(ns for ns, _ in own)
    assert value(measured(found, workers).compute_per_s) == pytest.approx(clocked, rel=NEAR)
    cpu_ns = sum(one["cpu_ns"] for one in steps[-38:])
    assert value(measured(found, workers).compute_per_s) <= 38 * BATCH * 1e9 / cpu_ns


@cases()
def test_the_loader_alone_is_what_its_batches_clocked(workers: int) -> None:
    found, batches = of(workers)
    drained = kind(found, "drain")
    made = inside(batches, drained)
    assert drained.batches == 80
    # Made and taken out are apart by what lies in the queue: 2 batches for each worker.
    assert abs(len(made) - 80) <= 2 * workers + 1
    samples = sum(one["samples"] for one in made)
    clocked = samples * 1e9 / (drained.end_ns - drained.begin_ns)
    assert value(measured(found, workers).loader_per_s) == pytest.approx(clocked, rel=NEAR)


@cases()
def test_preparing_and_fetching_are_what_the_batches_clocked(workers: int) -> None:
    found, batches = of(workers)
    made = inside(batches, kind(found, "drain"))
    at_once = max(1, workers)
    samples = sum(one["samples"] for one in made)
    blocked = sum(one["blocked_ns"] for one in made)
    busy = sum(one["cpu_ns"] + one["runqueue_ns"] for one in made)
    ours = measured(found, workers)
    fetch, prep = at_once * samples * 1e9 / blocked, at_once * samples * 1e9 / busy
    assert value(ours.fetch_per_s) == pytest.approx(fetch, rel=NEAR)
    assert value(ours.prep_per_s) == pytest.approx(prep, rel=NEAR)
    # The costs that were planted are bounds: no part takes less than its sleeps, or its loops.
    assert value(ours.fetch_per_s) <= at_once * 1e9 / 8e6 * (1 + NEAR)
    assert value(ours.prep_per_s) <= at_once * 1e9 / 4e6 * (1 + NEAR)
    for one in (ours.fetch_per_s, ours.prep_per_s, ours.loader_per_s, ours.compute_per_s):
        assert isinstance(one, Measured)
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.value <= one.high


@cases()
def test_the_loader_is_no_quicker_than_its_parts(workers: int) -> None:
    found, _ = of(workers)
    ours = measured(found, workers)
    loader = value(ours.loader_per_s)
    assert loader <= value(ours.fetch_per_s) * (1 + NEAR)
    assert loader <= value(ours.prep_per_s) * (1 + NEAR)
    # Wall time of a worker is the sum of both, so the rates add up like resistors in a row.
    together = 1 / (1 / value(ours.fetch_per_s) + 1 / value(ours.prep_per_s))
    assert loader <= together * (1 + NEAR)


def test_compute_per_sample_is_seen_per_sample() -> None:
    found, _ = of(0, "sample")
    ours = value(measured(found, 0).compute_per_s)
    cpu_ns = [one["cpu_ns"] / one["samples"] for one in found.log["steps"][-38:]]
    assert min(cpu_ns) >= 5e6
    assert ours <= 1e9 * len(cpu_ns) / sum(cpu_ns)


def test_windows_of_one_trial_are_those_of_separate_ones() -> None:
    """By what the script's own log says they did: the same steps, batches and samples."""
    words = ["known_cost.py", "--plant", "compute=0,blocked=0,cpu=0"]
    plans = [window("warm_up", 3), window("baseline", 9), window("replay", 12), window("drain", 8)]
    one = trial(words, *plans)
    apart = [trial(words, plans[0], plan) for plan in plans[1:]]
    for index, other in enumerate(apart, 1):
        ours, theirs = one.windows[index], other.windows[1]
        assert ours.kind == theirs.kind
        assert (ours.steps, ours.batches, ours.samples) == (
            theirs.steps,
            theirs.batches,
            theirs.samples,
        )
    # Up to the replay the script saw the same batches in both; in it those that were kept.
    assert one.log["seen"][: 1 + 3 + 9] == apart[0].log["seen"]
    kept = {tuple(each) for each in apart[1].log["seen"][1 : 1 + 3 + 2]}
    replayed = {tuple(each) for each in apart[1].log["seen"][1 + 3 + 2 :]}
    assert replayed <= kept
