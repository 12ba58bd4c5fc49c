"""Which recordings a proof makes, and what it says where one is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotlap.tune import proof
from hotlap.tune.proof import Prover, steps_to_record
from hotlap.values.arm import Arm
from hotlap.values.trace import ParameterTrace, TrainingTrace

TRACE = TrainingTrace(
    12, "steps", losses=(1.0,), parameters=(ParameterTrace(0, 0, (1,), "float32", True, 1.0, 1.0),)
)


class FakeLab:
    """Runs nothing; answers by the knobs that are on."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.folder = Path()
        self.answers = answers
        self.asked: list[dict[str, Any]] = []
        self.is_interrupted = False
        self.on: tuple[str, ...] = ()

    @contextlib.contextmanager
    def under(self, settings: Mapping[str, Any], _environment: Any) -> Iterator[None]:
        """Note what is on."""
        self.on = tuple(settings)
        yield

    def run(self, _name: str, plan: Any, _limit_s: float, **_: Any) -> Any:
        """Answer with a trace, a text for a failure, or None for an interrupt."""
        self.asked.append(dict(plan.settings))
        answer = self.answers.get(",".join(self.on), TRACE)
        sound = isinstance(answer, TrainingTrace)
        process = SimpleNamespace(trace=answer, faults=())
        return SimpleNamespace(
            is_sound=sound,
            record=process,
            ended=SimpleNamespace(by="interrupt" if answer is None else "itself"),
            why_not=lambda: answer,
        )


def prover(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> tuple[Prover, FakeLab]:
    """Make a prover over a lab that answers by the knobs that are on."""
    monkeypatch.setattr(proof, "trainer", lambda record: record)
    monkeypatch.setattr(proof, "epoch_steps", lambda _: None)
    lab = FakeLab({name.replace("none", ""): one for name, one in answers.items()})
    bench: Any = SimpleNamespace(lab=lab, start_s=1.0, span=SimpleNamespace(seconds=1.0, steps=10))
    facts: Any = None
    return Prover(bench, facts), lab


def test_how_many_steps_are_recorded() -> None:
    assert steps_to_record(0.01, None) == 48
    assert steps_to_record(0.5, None) == 20
    assert steps_to_record(5.0, None) == 12
    assert steps_to_record(0.01, 100.0) == 104
    assert steps_to_record(0.01, 10.0) == 48
    assert steps_to_record(0.01, 1000.0) == 48


def test_the_unchanged_command_is_recorded_twice_and_once_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, lab = prover(monkeypatch)
    assert found.prove(Arm(), Arm({"a": 1}), "identical").word == "identical"
    assert lab.asked == [{"seed": 0}] * 3
    assert found.prove(Arm({"a": 1}), Arm({"a": 1, "b": 1}), "rounding").word == (
        "not distinguishable in 12 steps"
    )
    assert lab.asked[3:] == [{"seed": 0, "perturb": 1e-6}, {"seed": 0}]


def test_the_strongest_class_of_all_knobs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lab = prover(monkeypatch)
    found.prove(Arm(), Arm({"a": 1}), "resampled")
    assert {"seed": 1} in lab.asked
    word = found.prove(Arm({"a": 1}), Arm({"a": 1, "b": 1}), "identical").word
    assert word == "not distinguishable in 12 steps"


def test_a_failure_under_knobs_alone_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = prover(monkeypatch, a="it broke")
    assert found.prove(Arm(), Arm({"a": 1}), "identical").word == "differs: it failed: it broke"


def test_without_the_unchanged_training_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = prover(monkeypatch, none="it broke")
    assert found.prove(Arm(), Arm({"a": 1}), "identical").word == (
        "unknown, because the unchanged training was not recorded: it broke"
    )


@pytest.mark.parametrize("where", ["none", "a"])
def test_ctrl_c_ends_it(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    found, _ = prover(monkeypatch, **{where: None})
    word = found.prove(Arm(), Arm({"a": 1}), "identical").word
    assert word == "unknown, because Ctrl-C ended it"
