"""Marks on a device's stream, and the times between them: the only code that calls CUDA events.

A mark is an event recorded on a stream. The device writes its own clock into it when it gets
there; the host goes on at once. Times are read later, when ``query`` says that the last mark of a
sample is behind us: nothing here waits for the device, ever.
"""

from __future__ import annotations

from itertools import pairwise
from time import perf_counter_ns
from typing import Any


class Sample:
    """The marks of one step, in the order in which the training thread set them.

    parts: ``parts[i]`` is the account that the time from mark i to mark i+1 belongs to.
    stack: accounts of the phases that are open now, innermost last.
    ticks: of the timeline, as last seen. carved_ns: of the timeline when the sample began.
    """

    __slots__ = ("begun_ns", "carved_ns", "closed_ns", "marks", "parts", "stack", "ticks")

    def __init__(self, ticks: int, carved_ns: int) -> None:
        self.ticks = ticks
        self.carved_ns = carved_ns
        self.begun_ns = perf_counter_ns()
        self.closed_ns = 0
        self.marks: list[Any] = []
        self.parts: list[int] = []
        self.stack: list[int] = []


class Events:
    """A pool of timing events of one CUDA (or HIP) device.

    An event is made when the pool is empty and lives as long as the process: CUDA binds it to
    the device on which it is recorded first, and recording it again forgets what it held.
    """

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._free: list[Any] = []
        self.made = 0

    def capturing(self) -> bool:
        """Tell whether a graph is being captured: no call of ours may come in between then."""
        return bool(self._cuda.is_current_stream_capturing())

    def stream(self, device: int) -> Any:
        """Return the stream that work of this thread goes to on a device."""
        return self._cuda.current_stream(device)

    def mark(self, sample: Sample, stream: Any, account: int) -> None:
        """Set a mark; the time since the one before belongs to ``account``. Cost: 3 us."""
        if self._free:
            event = self._free.pop()
        else:
            event = self._cuda.Event(enable_timing=True)
            self.made += 1
        event.record(stream)
        if sample.marks:
            sample.parts.append(account)
        sample.marks.append(event)

    def resolve(self, sample: Sample) -> dict[int, int] | None:
        """Return nanoseconds of the device per account; None while it is not there yet.

        All marks lie on one stream, which passes them in order: when the last is reached all are.
        """
        if not sample.marks[-1].query():
            return None
        times: dict[int, int] = {}
        for account, (begin, end) in zip(sample.parts, pairwise(sample.marks), strict=True):
            times[account] = times.get(account, 0) + round(begin.elapsed_time(end) * 1e6)
        return times

    def release(self, sample: Sample) -> None:
        """Give the events of a sample back, whether the device has reached them or not."""
        self._free.extend(sample.marks)
        sample.marks = []
        sample.parts = []


def devices_of(torch: Any, subject: Any) -> set[tuple[str, int | None]]:
    """Return type and index of the devices that a module's or an optimizer's parameters lie on."""
    if hasattr(subject, "param_groups"):
        parameters = [one for group in subject.param_groups for one in group["params"]]
    elif hasattr(subject, "parameters"):
        parameters = list(subject.parameters())
    else:
        return set()
    with torch._C.DisableTorchFunction():
        return {(one.device.type, one.device.index) for one in parameters}
