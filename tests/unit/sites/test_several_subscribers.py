"""Two and more subscribers to one channel."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.sites.around import around, nothing
from hotlap.sites.hub import Channel, Hub


class Story:
    """Subscribers that write down what they are told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.faults: list[str] = []
        self.hub = Hub(lambda site, _: self.faults.append(site))

    def add(self, name: str, token: Any) -> None:
        def begin(_: Any) -> Any:
            self.lines.append(f"{name} begins")
            return token

        def end(given: Any, subject: Any) -> None:
            self.lines.append(f"{name} ends, {given}, {subject}")

        self.hub.subscribe("place", begin, end)

    def channel(self) -> Channel:
        return self.hub.channel("place")


@pytest.fixture
def story() -> Story:
    return Story()


def test_ends_come_in_reverse_order_with_their_own_tokens(story: Story) -> None:
    for name, token in (("a", 1), ("b", "two"), ("c", [3])):
        story.add(name, token)
    begin, end = story.channel().ends()
    end(begin("x"), "y")
    assert story.lines == [
        *("a begins", "b begins", "c begins"),
        *("c ends, [3], y", "b ends, two, y", "a ends, 1, y"),
    ]


def test_one_that_gave_no_token_does_not_hear_of_the_end(story: Story) -> None:
    for name, token in (("a", 0), ("b", 2), ("c", None)):
        story.add(name, token)
    begin, end = story.channel().ends()
    end(begin("x"), "y")
    assert story.lines[3:] == ["b ends, 2, y"]


def test_no_token_at_all_is_none_for_the_site(story: Story) -> None:
    """Sites leave out the end then: a module's call on another thread, say."""
    story.add("a", 0)
    story.add("b", None)
    begin, end = story.channel().ends()
    assert not begin("x")
    end(0, "y")  # what a site gives that lost the token
    assert story.lines == ["a begins", "b begins"]


def test_one_that_only_listens_to_ends(story: Story) -> None:
    story.add("a", 0)
    story.hub.subscribe("place", end=lambda _, subject: story.lines.append(f"heard {subject}"))
    begin, end = story.channel().ends()
    end(begin("x"), "y")
    assert story.lines == ["a begins", "heard y"]


def test_an_empty_channel_has_ends_that_do_nothing(story: Story) -> None:
    begin, end = story.channel().ends()
    end(begin("x"), "y")
    assert not story.channel()


def test_a_fault_of_one_is_a_fault_of_the_site(story: Story) -> None:
    story.add("a", 1)
    story.hub.subscribe("place", lambda _: 1 / 0)
    call = around(lambda: "result", story.channel(), nothing)
    assert call() == "result"
    assert call() == "result"
    assert story.faults == ["place"]
    assert story.lines == ["a begins"]
