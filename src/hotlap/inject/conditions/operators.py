"""A few steps under torch's profiler: which operators the user's lines call.

It costs the steps up to twice their time, so nothing else is measured in them. The tree of events
is private to torch: where it is gone or has changed, the window says so and measures nothing.
"""

from __future__ import annotations

import sys
from typing import Any

from hotlap.inject.conditions.event_tree import Names, Walk
from hotlap.probe.recorder import Recorder
from hotlap.runs import frames


class UnderProfiler:
    """Profiles from ``begin`` to ``end``, both between two steps."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._profiler: Any = None

    def begin(self) -> None:
        """Start torch's profiler. Raises LookupError, in words, where it cannot."""
        torch = sys.modules["torch"]
        if torch.autograd._profiler_enabled():
            raise LookupError("the script runs torch's profiler itself")
        profiler = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True
        )
        profiler.start()
        self._profiler = profiler

    def end(self, steps: int) -> tuple[str, ...]:
        """Stop it and write what it saw in so many steps; return what went wrong, in words."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return ()
        profiler.stop()
        if not steps:
            return ("no whole step was profiled",)
        try:
            roots = profiler.profiler.kineto_results.experimental_event_tree()
            walk = Walk(Names(self._recorder.places.is_users, self._recorder.places.shown))
            walk.take(roots)
            rows = walk.rows(steps)
        except (AttributeError, TypeError, RuntimeError) as error:
            words = " ".join(str(error).split())[:200]
            return (f"this torch gives its events in another form: {words}",)
        content = {"steps": steps, "rows": rows}
        self._recorder.recording.add(frames.encode_json("oper", content))
        self._recorder.recording.flush()
        return () if rows else ("torch's profiler saw no operator",)
