"""The wrapper that most sites need: begin, the user's call, end; our frame out of tracebacks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hotlap.sites.hub import Channel


def around(
    original: Callable[..., Any],
    channel: Channel,
    subject: Callable[[tuple[Any, ...]], Any],
) -> Callable[..., Any]:
    """Wrap ``original`` so that ``channel`` hears of each call; result and exceptions are its own.

    subject: picks what the subscribers see out of the positional arguments. ``first`` and
    ``nothing`` are not called: in a step that has evicted our code, each call costs 1-2 us.
    """
    begin, end = channel.ends()
    fail = channel.fail
    picks_first, picks = subject is first, subject is not nothing

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        begun = channel.open
        if begun:
            try:
                if picks_first:
                    seen = args[0] if args else None
                elif picks:
                    seen = subject(args)
                else:
                    seen = None
                token = begin(seen)
            except Exception as error:
                begun = False
                fail(error)
        # Outside of our handler: the user's exception must not get ours as its context.
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            hide_this_frame(error)
            raise
        finally:
            if begun:
                try:
                    end(token, seen)
                except Exception as error:
                    fail(error)

    return call


_traceback_of = BaseException.__dict__["__traceback__"].__get__


def hide_this_frame(error: BaseException) -> None:
    """Drop the first traceback entry: the frame of ours that is about to re-raise.

    A bare ``raise`` after it adds no new entry, so the user's traceback is as without us. Python
    3.10 raises again with the traceback that it had saved: there our entry stays visible.
    """
    # Past the attributes of its own class, which may refuse (a frozen dataclass).
    place = _traceback_of(error)
    if place is not None:
        BaseException.with_traceback(error, place.tb_next)


def first(args: tuple[Any, ...]) -> Any:
    """Pick the first positional argument (``self`` of a method), or None."""
    return args[0] if args else None


def nothing(args: tuple[Any, ...]) -> Any:  # noqa: ARG001 - the signature of a subject picker
    """Pick nothing."""
    return None
