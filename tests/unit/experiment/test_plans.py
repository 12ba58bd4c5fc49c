"""Windows fit into the run that was seen, into the budget, and onto the cores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotlap.experiment import plans
from hotlap.values.facts import Facts
from hotlap.values.summary import (
    LoaderSummary,
    MachineSummary,
    Part,
    ProcessSummary,
    RunSummary,
    StepSummary,
)

MS = 1_000_000


def facts(
    *,
    steps: int = 500,
    step_ns: int = 10 * MS,
    wait: float = 0.5,
    workers: int | None = 2,
    whole: bool = False,
    cores: float = 4.0,
    ranks: int = 1,
) -> Facts:
    """Return facts of a watched run. workers: None for a run without a loader."""
    loader = LoaderSummary(
        0, "D", None, "training", 8, workers or 0, steps, MS, MS, {}, False, None, None, None
    )
    step = _step(steps, step_ns, wait)
    trainers = tuple(
        ProcessSummary(
            pid=rank,
            host="here",
            rank=rank,
            local_rank=rank,
            world_size=ranks,
            torch="2",
            device="cpu",
            phases={},
            step=step,
            loaders=() if workers is None else (loader,),
            touches=(),
        )
        for rank in range(ranks)
    )
    values: dict[str, Any] = dict.fromkeys(
        ("id", "hotlap_version", "started", "horizon_source"), ""
    )
    run = RunSummary(
        **values,
        command=(),
        finished=True,
        exit_code=0,
        wall_ns=None,
        phases={},
        horizon_steps=None,
        trainers=trainers,
        machine=MachineSummary(cores_allowed=cores, cores_visible=64),
        standing_out=(),
        not_measured=(),
        faults=(),
        absence=None,
    )
    return Facts(run=run, whole_run=whole)


def _step(steps: int, step_ns: int, wait: float) -> StepSummary:
    return StepSummary(
        rule="optimizer",
        steps=steps,
        steady_steps=steps - 5,
        warm_up_steps=5,
        ticks_per_step=1.0,
        median_ns=step_ns,
        p10_ns=None,
        p90_ns=None,
        phases={"data_wait": Part(None, wait), "forward": Part(None, 1 - wait)},
        samples_per_s=None,
        cpu_share=None,
        mean_ns=step_ns,
    )


def given(seen: Facts, steps: int | None = None, seconds: float = 12.0) -> plans.Lengths:
    """Return the lengths of three windows; fails where there are none."""
    found = plans.lengths(seen, steps, seconds, 3)
    assert isinstance(found, plans.Lengths), found
    return found


def test_a_watched_trial_ends_by_time_and_is_sampled() -> None:
    plan = plans.watch_plan(27.0)
    assert [(one.kind, one.seconds) for one in plan.windows] == [("baseline", 27.0)]
    assert plan.windows[0].steps > 10**6
    assert plan.sample_hz
    assert plan.clock_samples


def test_ceilings_share_one_trial_with_a_baseline_on_each_side_of_the_replay() -> None:
    plan = plans.ceilings_plan(facts(), given(facts()))
    kinds = [one.kind for one in plan.windows]
    assert kinds[:5] == ["warm_up", "baseline", "replay", "baseline", "drain"]
    assert plan.windows[1] == plan.windows[3]
    assert plan.sample_hz is None


def test_without_a_loader_there_is_nothing_to_replay_or_to_drain() -> None:
    plan = plans.ceilings_plan(facts(workers=None), given(facts(workers=None)))
    assert [one.kind for one in plan.windows] == ["warm_up", "baseline", "baseline"]


@pytest.mark.parametrize(
    ("cores", "ranks", "expected"),
    [
        (1.0, 1, (0, 1)),
        (2.0, 1, (0, 1, 2)),
        (6.0, 1, (0, 1, 2, 4, 6)),
        (8.0, 1, (0, 1, 2, 4, 8)),
        (8.0, 4, (0, 1, 2)),
        (1.5, 2, (0, 1)),
    ],
)
def test_workers_are_tried_up_to_the_cores_that_a_rank_has(
    cores: float, ranks: int, expected: tuple[int, ...]
) -> None:
    seen = facts(cores=cores, ranks=ranks)
    assert plans.worker_counts(seen) == expected
    tried = [one.workers for one in plans.loader_plan(seen).windows if one.kind == "workers"]
    assert tuple(tried) == expected


def test_where_the_input_takes_little_no_other_worker_counts_are_tried() -> None:
    assert plans.worker_counts(facts(wait=0.01)) == ()


def test_the_page_cache_is_touched_last_and_only_where_the_input_matters() -> None:
    waiting, quick = plans.loader_plan(facts()), plans.loader_plan(facts(wait=0.01))
    assert [one.kind for one in waiting.windows].index("storage") == len(waiting.windows) - 1
    assert "storage" not in [one.kind for one in quick.windows]


@pytest.mark.parametrize(
    ("length", "horizon", "expected"),
    [
        (4000, None, 2000.0),  # two batches a step
        (1000, None, None),  # an epoch was seen
        (None, None, None),
        (4000, 5000, 2000.0),
        (4000, 1500, None),  # the run ends before its first epoch does
    ],
)
def test_an_epoch_longer_than_what_was_watched(
    length: int | None, horizon: int | None, expected: float | None
) -> None:
    seen = facts(steps=1000)  # batches
    seen = replace(
        seen,
        counts={"steps": 500.0},
        defaults={} if length is None else {"epoch_batches": length},
        run=replace(seen.run, horizon_steps=horizon),
    )
    assert plans.unseen_epoch(seen) == expected
    assert plans.unseen_epoch(replace(seen, whole_run=True)) is None


def test_native_stacks_are_for_code_beside_the_model() -> None:
    assert plans.wants_native(facts(wait=0.3))
    assert not plans.wants_native(facts(wait=0.05))


def test_windows_fit_into_a_short_run() -> None:
    seen = facts(steps=60, step_ns=MS, whole=True)
    found = given(seen)
    assert found.warm_up + 3 * found.steps + plans.queued(seen) < 60


def test_a_run_with_too_few_steps_says_so() -> None:
    found = plans.lengths(facts(steps=12, whole=True), None, 12.0, 3)
    assert isinstance(found, str)
    assert "12 steps" in found


def test_steps_that_are_too_long_for_the_budget_say_so() -> None:
    found = plans.lengths(facts(step_ns=20_000 * MS), None, 12.0, 3)
    assert isinstance(found, str)
    assert "budget" in found


def test_steps_that_the_user_asked_for_are_taken() -> None:
    assert given(facts(), steps=37).steps == 37


def test_a_step_of_unknown_length_says_so() -> None:
    seen = facts()
    step = replace(seen.run.trainers[0].step, mean_ns=None, median_ns=None)
    trainer = replace(seen.run.trainers[0], step=step)
    found = plans.lengths(replace(seen, run=replace(seen.run, trainers=(trainer,))), None, 9.0, 3)
    assert isinstance(found, str)


def test_a_changed_trial_differs_from_its_reference_by_the_change_alone() -> None:
    lengths = given(facts())
    changed = plans.changed_plan(lengths, "intra_op_threads", 2)
    assert changed.settings == {"intra_op_threads": 2}
    assert replace(changed, settings={}) == plans.changed_plan(lengths)


def test_operators_are_looked_at_where_the_model_takes_the_time() -> None:
    assert plans.wants_operators(facts(wait=0.2))
    assert not plans.wants_operators(facts(wait=0.8))
