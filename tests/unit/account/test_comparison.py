"""Two runs compared: which word, which interval, and what keeps them from being compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotlap.account import summarise
from hotlap.account.comparison import compare
from hotlap.values.comparison import Comparison, Interval, word_of
from hotlap.values.record import Record
from unit.account.records import MS, Trainer, accounts, fetches, loader, record


def run(name: str, scale: float = 1.0, seed: int = 1, **fields: Any) -> Record:
    """Return a run of 200 noisy steps of 10 ms times the scale."""
    trainer = Trainer().begin().steps(200, seed, 0.05, forward=int(10 * MS * scale))
    given = {"facts": {"cpu_model": "X", "cores_allowed": 2.0}, "id": name, **fields}
    return record(trainer.farewell().build(), **given)


def compared(before: Record, after: Record) -> Comparison:
    """Return the comparison of two records."""
    return compare((before, after), (summarise(before), summarise(after)))


def test_a_shorter_step_is_faster_and_says_where() -> None:
    found = compared(run("a"), run("b", 0.8, seed=2))
    assert found.word == "faster"
    assert found.ratio is not None
    assert found.ratio.low < 1.25 < found.ratio.high
    assert found.changes[0].name == "forward"
    assert found.because == ()
    assert any("one run each" in words for words in found.doubts)


def test_the_same_turned_round_is_slower() -> None:
    found = compared(run("a", 0.8), run("b", seed=2))
    assert found.word == "slower"
    assert found.ratio is not None
    assert found.ratio.high < 1.0


def test_equal_runs_are_no_different() -> None:
    assert compared(run("a"), run("b", seed=2)).word == "no difference"


@pytest.mark.parametrize(
    ("ratio", "word"),
    [
        (Interval(1.01, 1.02, 1.03), "no difference"),  # sure, and too small to matter
        (Interval(0.99, 1.20, 1.40), "no difference"),  # large, and not sure
        (Interval(1.01, 1.04, 1.08), "faster"),
        (Interval(0.90, 0.95, 0.99), "slower"),
    ],
)
def test_a_word_takes_both_certainty_and_size(ratio: Interval, word: str) -> None:
    assert word_of(ratio) == word


def test_a_stall_at_every_tenth_step_counts() -> None:
    """The median step of both runs is the same; the second does without the stalls."""
    stalling, smooth = Trainer().begin(), Trainer().begin()
    for at in range(400):
        stalling.tick(accounts(forward=10 * MS, data_wait=50 * MS if at % 10 == 9 else 0))
        smooth.tick(accounts(forward=10 * MS))
    found = compared(record(stalling.farewell().build()), record(smooth.farewell().build()))
    assert found.word == "faster"
    assert found.ratio is not None
    assert found.ratio.mid == pytest.approx(1.5, rel=0.02)


def test_larger_batches_are_compared_by_the_sample() -> None:
    def loaded(name: str, size: int, step_ms: int) -> Record:
        trainer = Trainer().begin().steps(100, forward=step_ms * MS).farewell()
        read = fetches(batches=100, samples=100 * size)
        return record(trainer.build(loaders=(loader(),), fetches=(read,)), id=name)

    found = compared(loaded("a", 32, 10), loaded("b", 64, 15))
    assert (found.word, found.by) == ("faster", "sample")
    assert found.ratio is not None
    assert found.ratio.mid == pytest.approx(4 / 3, rel=0.02)


def test_one_run_each_needs_a_margin() -> None:
    """An interval that a step of one run gives excludes 1 sooner than a second run would."""
    surely = Interval(1.02, 1.04, 1.07)
    assert word_of(surely) == "faster"
    assert word_of(surely, 0.03) == "no difference"
    assert word_of(Interval(0.94, 0.96, 0.98), 0.03) == "no difference"
    assert word_of(Interval(0.90, 0.93, 0.96), 0.03) == "slower"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"facts": {"cpu_model": "Y", "cores_allowed": 2.0}}, "different machines: processor X"),
        ({"facts": {"cpu_model": "X", "cores_allowed": 4.0}}, "cores that it may use"),
    ],
)
def test_another_machine_is_not_comparable(changed: dict[str, Any], words: str) -> None:
    found = compared(run("a"), run("b", 0.5, **changed))
    assert found.word == "not comparable"
    assert words in found.because[0]
    assert found.ratio is not None  # and yet it is told


def test_ranks_and_devices_must_be_the_same() -> None:
    other = run("b")
    process = replace(other.processes[0], world_size=2, rank=0, device="cuda:0")
    found = compared(run("a"), replace(other, processes=(process,)))
    assert found.word == "not comparable"
    assert "on cpu and on cuda" in found.because[0]
    assert "1 and 2 ranks" in found.because[1]


def test_a_run_without_steps_or_with_few_is_not_comparable() -> None:
    empty = compared(run("a"), record(id="b"))
    assert empty.word == "not comparable"
    assert "b has no step" in empty.because[0]
    short = record(Trainer().begin().steps(5).farewell().build(), id="c", facts=run("a").facts)
    few = compared(run("a"), short)
    assert few.word == "not comparable"
    assert "c has 5 steady steps" in few.because[-1]
