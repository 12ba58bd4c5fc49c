"""What counts as a forward or backward pass of the training, and what is the compiler's own."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from hotlap.probe.ledger import BACKWARD, COMPILE, FORWARD, Ledger
from hotlap.probe.models import Models


class Story:
    """Stands for the timeline: notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.stretch = None
        self.rank = 99
        self.at_edge = self.stepped_inside = False
        self.counts = [0, 0, 0]
        self.fetched = ["a loader that is not known to train"]

    def forward(self, _module: Any, _grad: bool) -> None:
        self.told.append("forward")

    def backward(self) -> None:
        self.told.append("backward")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[Ledger, Story, Any]:
    """Return a ledger, a story, and the watcher of models between them."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(is_grad_enabled=lambda: True))
    ledger, story = Ledger(), Story()
    return ledger, story, Models(ledger, story)  # type: ignore[arg-type]  # a stand-in


def test_passes_have_their_accounts(watched: tuple[Ledger, Story, Any]) -> None:
    ledger, story, models = watched
    forward = models.forward_begins(None)
    assert ledger.current == FORWARD
    models.forward_ended(forward, None)
    backward = models.backward_begins(None)
    assert ledger.current == BACKWARD
    assert models.backward_begins(None) == 0  # double backward: part of the outer one
    models.backward_ended(backward, None)
    assert story.told == ["forward", "backward"]
    assert ledger.stack == []


def test_the_compiler_traces_passes_and_runs_none(watched: tuple[Ledger, Story, Any]) -> None:
    ledger, story, models = watched
    compiling = models.compile_begins(None)
    for begins, ended in (
        (models.forward_begins, models.forward_ended),
        (models.backward_begins, models.backward_ended),
    ):
        token = begins(None)
        assert token == 0
        assert ledger.current == COMPILE
        ended(token, None)
    models.compile_ended(compiling, None)
    assert story.told == []
    assert ledger.stack == []
