"""Writes and flushes of the standard streams are heard, and the streams stay as they were."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from hotlap.sites import streams
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches


class NoFlush:
    """A stream of the user's own making."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def installed(monkeypatch: pytest.MonkeyPatch, stdout: Any) -> tuple[list[Any], Patches]:
    """Install the site on this stdout; return the list that fills with what it says."""
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setattr(sys, "stderr", None)
    told: list[Any] = []
    hub, patches = Hub(lambda name, error: told.append((name, error))), Patches()
    hub.subscribe("write", lambda subject: subject, lambda token, _: told.append(token))
    streams.install(hub, patches)
    return told, patches


def test_a_flushed_print_is_its_writes_and_a_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    told, patches = installed(monkeypatch, io.TextIOWrapper(raw, encoding="utf-8"))
    try:
        print("eight", flush=True)
    finally:
        patches.undo()
    assert told == [("stdout", 5), ("stdout", 1), ("stdout flush", None)]
    assert raw.getvalue() == b"eight\n"


def test_the_stream_is_as_before_when_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    told, patches = installed(monkeypatch, stream)
    assert set(vars(stream)) >= {"write", "flush"}
    patches.undo()
    assert not {"write", "flush"} & set(vars(stream))
    print("unheard", flush=True)
    assert told == []


def test_a_stream_without_flush_is_written_to_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = NoFlush()
    told, patches = installed(monkeypatch, stream)
    try:
        print("a")
    finally:
        patches.undo()
    assert stream.text == "a\n"
    assert told == [("stdout", 1), ("stdout", 1)]
