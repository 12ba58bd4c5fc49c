"""Compiled hooks on state that is plain, and what they stand for."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from hotlap.fast import choice
from hotlap.fast.choice import Ledger, Standing, Ticks

hooks: Any = choice.hooks


class Host:
    """Stands for torch's class; its method is hooked."""

    def __init__(self) -> None:
        self.training = True

    def __call__(self, work: Any = None, *more: Any, factor: int = 1) -> Any:
        """Run what it is given."""
        return work() if callable(work) else (work, more, factor)


class Bench:
    """Hooks on state that is plain: a training in its second step."""

    def __init__(self) -> None:
        self.ledger, self.standing = Ledger(), Standing()
        self.standing.kept = Ticks()
        self.standing.ticks, self.standing.rank = 1, 3
        self.standing.counts[0] = 1
        self.standing.kept.due_ns = 1 << 62
        self.faults: list[BaseException] = []
        self.left: list[str] = []
        self.ended: list[Any] = []
        self.grad = True

    def end(self, *told: Any) -> None:
        """What the channel's end is."""
        self.ended.append(told)
        if len(told) == 2:
            self.ledger.leave(told[0])

    def make(self, kind: str, original: Any, *extra: Any) -> Any:
        """Return a hook whose wrapper in Python notes that it was called."""

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.left.append(kind)
            return original(*args, **kwargs)

        made = hooks.Hook(
            kind,
            original,
            wrapper,
            self.ledger,
            self.standing,
            self.end,
            self.faults.append,
            False,
            extra,
        )
        return functools.update_wrapper(made, original)

    def module(self, original: Callable[..., Any] = Host.__call__) -> Any:
        """Return a hook of a model's call."""
        return self.make("module", original, lambda: self.grad)

    def root(self) -> Host:
        """Return a model that trains."""
        host = Host()
        self.standing.roots[id(host)] = weakref.ref(host)
        return host


def throw(error: type[BaseException]) -> None:
    """Raise it."""
    raise error
