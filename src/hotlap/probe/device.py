"""The device's own clock: how long its stream spends in each phase of sampled steps.

Time between two marks on a stream is time that the stream took to get from one to the other:
work, and waiting for the host to send more. See docs/concepts/device.md for what may be
concluded from it, and for how often it is sampled and why.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

from hotlap.probe import device_reasons as why
from hotlap.probe.device_events import Events, Sample, devices_of
from hotlap.probe.journal import Journal
from hotlap.probe.ledger import (
    BACKWARD,
    COMMUNICATION,
    EVALUATION,
    FORWARD,
    OPTIMIZER,
    OTHER,
    TRANSFER,
    Ledger,
)
from hotlap.probe.timeline import Timeline
from hotlap.probe.turns import Turns
from hotlap.runs import frames
from hotlap.sites.hub import Hub
from hotlap.values.phase import STEP_PHASES

WARM_UP: Final = 20
"""Ticks before the first sample: kernels are loaded and chosen, memory pools grow."""
AT_ONCE: Final = 20
"""Samples of consecutive steps after that: the start-up report has something to say."""
EVERY: Final = 64
"""Steps from one sample to the next after those, at least; more where a sample costs more."""
COST_NS: Final = 1000
"""What sampling may cost the host per step in the long run,"""
COST_PARTS: Final = 10_000
"""or one part in so many of the time, where that is more."""
PENDING: Final = 8
"""Samples that wait for the device at a time; none is begun when there are as many."""
PATIENCE_NS: Final = 30_000_000_000
"""Age at which a sample that the device has not passed is given up, if others want its place."""
MARKS: Final = 1024
"""Marks in one sample at most."""
_LONGEST: Final = 4096
_BLIND: Final = 64
_NEVER: Final = 1 << 62

_left_behind: list[Any] = []
"""Events that a forked child inherited. They are never freed there: CUDA does not outlive a fork,
and freeing one is a call of CUDA."""


class DeviceClock:
    """Watches the phases of the training thread on the device's side.

    torch: the module; of it only ``cuda``, ``version`` and what tells that it compiles are used.
    usable: whether this build of torch knows CUDA or HIP; else this subscribes to nothing.
    Subscribes after the ledger's watchers, so it hears of a begin after them, of an end before.
    Cost: 0.1 us per phase outside of sampled steps; 3 us per mark in them.
    """

    def __init__(self, ledger: Ledger, timeline: Timeline, journal: Journal, torch: Any) -> None:
        self._ledger = ledger
        self._timeline = timeline
        self._journal = journal
        self._torch = torch
        self.usable = bool(torch.version.cuda or torch.version.hip)
        self._reset()

    def _reset(self) -> None:
        self._events = Events(self._torch.cuda)
        self._device: int | None = None
        self._stream: Any = None
        self._sample: Sample | None = None
        self._pending: deque[Sample] = deque()
        self._turns = Turns(self._timeline)
        self._timeline.begun = self._turns.note if self.usable else None
        self._stepping = (0, 0)
        self._blind = 0
        self._timeline.due = WARM_UP if self.usable else _NEVER
        self._wait = 1
        self._spent_ns = 0
        self.because: str | None = why.TOO_SHORT if self.usable else why.NO_BUILD
        self.taken = self.dropped = self.resolved = 0
        self._times: dict[int, int] = {}
        self._written: tuple[Any, ...] | None = None
        self._journal.status.append(self.write)

    def attach(self, hub: Hub) -> None:
        """Subscribe to the phases; on a build without CUDA and HIP to nothing."""
        if not self.usable:
            return
        hub.subscribe("module_call", self.forward_begins, self.forward_ended)
        hub.subscribe("backward", self.backward_begins, self.backward_ended)
        hub.subscribe("optimizer_step", self.optimizer_begins, self.optimizer_ended)
        hub.subscribe("collective", self.collective_begins, self.collective_ended)
        hub.subscribe("tensor_copy", self.copy_begins, self.copy_ended)

    def after_fork(self) -> None:
        """In a forked child: start afresh, and leave the parent's events alone."""
        _left_behind.append((self._events, self._sample, self._pending, self._stream))
        self._reset()

    # -- what the sites tell: a comparison outside of sampled steps ------------------------------

    def forward_begins(self, module: Any) -> Sample | int:
        """The outermost forward pass of a model begins."""
        return 0 if self._timeline.ticks < self._timeline.due else self._enter(FORWARD, module)

    def backward_begins(self, _: Any) -> Sample | int:
        """A backward pass begins."""
        return 0 if self._timeline.ticks < self._timeline.due else self._enter(BACKWARD, None)

    def optimizer_begins(self, optimizer: Any) -> Sample | int:
        """An optimizer steps."""
        ticks = self._timeline.ticks
        self._turns.begins(ticks, optimizer)
        return 0 if ticks < self._timeline.due else self._enter(OPTIMIZER, optimizer)

    def collective_begins(self, _: Any) -> Sample | int:
        """The script calls a collective."""
        return 0 if self._timeline.ticks < self._timeline.due else self._enter(COMMUNICATION, None)

    def copy_begins(self, _: Any) -> Sample | int:
        """A copy begins that may cross devices."""
        return 0 if self._timeline.ticks < self._timeline.due else self._enter(TRANSFER, None)

    def forward_ended(self, sample: Sample, _: Any) -> None:
        """The forward pass has returned."""
        self._leave(sample, FORWARD)

    def backward_ended(self, sample: Sample, _: Any) -> None:
        """The backward pass has returned."""
        self._leave(sample, BACKWARD)

    def optimizer_ended(self, sample: Sample, _: Any) -> None:
        """The optimizer has stepped."""
        self._leave(sample, OPTIMIZER)

    def collective_ended(self, sample: Sample, _: Any) -> None:
        """The collective has returned."""
        self._leave(sample, COMMUNICATION)

    def copy_ended(self, sample: Sample, move: Any) -> None:
        """The copy has been sent off; it is none if nothing crossed devices."""
        self._leave(sample, TRANSFER if move is not None else OTHER)

    # -- in sampled steps ------------------------------------------------------------------------

    def _enter(self, account: int, subject: Any) -> Sample | int:
        """Go into a phase; return what its end needs, 0 when it does not matter."""
        ledger = self._ledger
        if not ledger.mine() or self._torch.compiler.is_compiling():
            return 0
        if account == FORWARD and ledger.current != FORWARD:
            return 0  # recomputed inside backward, or called by a data set: part of those
        begun = perf_counter_ns()
        try:
            return self._go_in(account, subject) or 0
        except Exception as error:
            self._fail(error)
            return 0
        finally:
            self._spent_ns += perf_counter_ns() - begun

    def _go_in(self, account: int, subject: Any) -> Sample | None:
        sample = self._sample
        if account in (TRANSFER, COMMUNICATION):
            if self._device is None or (sample is not None and sample.stack):
                return None  # inside a phase it is part of that
            if account == TRANSFER and self._events.stream(self._device) != self._stream:
                return None  # beside the compute stream: its time is not time of a step
        elif sample is not None and account in sample.stack:
            return self._again(sample, account, subject)
        if sample is not None and sample.ticks != self._timeline.ticks:
            sample = self._ticked(sample)
        if sample is None:
            sample = self._open(subject)
        if sample is not None and self._mark(sample):
            sample.stack.append(account)
            if account == OPTIMIZER:
                self._stepping = (id(subject), len(sample.marks))
            return sample
        return None

    def _again(self, sample: Sample, account: int, subject: Any) -> Sample | None:
        """Go into a phase that is open already: nearly always a part of it, without an end."""
        if account != OPTIMIZER or id(subject) != self._stepping[0]:
            return None  # a backward pass inside another, a wrapper's inner optimizer
        if len(sample.marks) == self._stepping[1]:
            return sample  # a subclass calls its base's `step`: one begin, and this one's end
        self._abandon(why.NESTED)  # its last step raised, whose end torch never tells
        return None

    def _leave(self, sample: Sample, account: int) -> None:
        """Come out of a phase; the ledger has not left it yet."""
        if sample is not self._sample:
            return
        begun = perf_counter_ns()
        try:
            stack = sample.stack
            entered = TRANSFER if account == OTHER else account
            if not stack or stack[-1] != entered:
                self._abandon(why.NESTED)
            elif account == OTHER or self._mark(sample):
                stack.pop()  # without a mark, what it was counts to what is around it
        except Exception as error:
            self._fail(error)
        finally:
            self._spent_ns += perf_counter_ns() - begun

    def _mark(self, sample: Sample) -> bool:
        """Set a mark; return False when the sample had to be abandoned instead."""
        device = self._device
        if device is None or self._events.capturing():
            return self._abandon(why.CAPTURING)
        stream = self._events.stream(device)
        if stream != self._stream:
            self._device = None  # learnt again at the next model that is called
            return self._abandon(why.STREAMS)
        if len(sample.marks) >= MARKS:
            return self._abandon(why.TOO_MANY)
        self._events.mark(sample, stream, sample.stack[-1] if sample.stack else OTHER)
        return True

    # -- from one step to the next ---------------------------------------------------------------

    def _open(self, subject: Any) -> Sample | None:
        """Begin a sample here, at the first edge after a tick, if all is as it should be."""
        if self._timeline.ticks < self._timeline.due:
            return None
        if not self._torch.cuda.is_initialized():
            self._later(why.NOT_USED)
        elif self._device is None:
            self._learn_device(subject)
        elif not self._turns.closed():
            self._timeline.due = self._timeline.ticks + 1
        elif (because := self._obstacle()) is not None:
            self._later(because)
        else:
            self._sample = Sample(self._timeline.ticks, self._carved_ns())
            self._timeline.due = -1
        return self._sample

    def _obstacle(self) -> str | None:
        """Return why no step can be sampled now."""
        if self._timeline.stretch is not None:
            return why.EVALUATED
        if self._events.capturing():
            return why.CAPTURING
        self._resolve()
        if len(self._pending) >= PENDING and not self._gave_up_oldest():
            return why.BEHIND
        return None

    def _ticked(self, sample: Sample) -> Sample | None:
        """Steps have ended since the last edge: end the sample, or go on inside a cycle."""
        ticks, sample.ticks = sample.ticks, self._timeline.ticks
        if sample.stack or sample.ticks != ticks + 1:
            self._abandon(why.NESTED)
            return None
        if not self._turns.closed():
            return sample
        if self._timeline.stretch is not None or self._carved_ns() != sample.carved_ns:
            self._abandon(why.EVALUATED)
            return None
        if not self._mark(sample):
            return None
        sample.closed_ns = perf_counter_ns()
        self._sample = None
        self._pending.append(sample)
        self.taken += 1
        self._wait = 1
        if not self.resolved:
            self.because = why.BEHIND
        step_ns = max(1, sample.closed_ns - sample.begun_ns)
        self._timeline.due = sample.ticks + (0 if self.taken < AT_ONCE else self._interval(step_ns))
        self._resolve()
        return None

    def _interval(self, step_ns: int) -> int:
        """Return the steps to leave out now, so that what was spent is paid for.

        They vary by a quarter around the mean, lest they beat with what a script does every
        100 steps; not at random, since the script's own random numbers are not ours to draw.
        """
        spent, self._spent_ns = self._spent_ns, 0
        steps = max(EVERY, min(spent // COST_NS, spent * COST_PARTS // step_ns) + 1)
        turn = self.taken * 0.618033988749895 % 1.0
        return int(steps * (0.75 + turn / 2))

    def _carved_ns(self) -> int:
        return sum(self._timeline.main[EVALUATION:])

    def _learn_device(self, subject: Any) -> None:
        """Find out where the model lies; the next step may be sampled then."""
        found = devices_of(self._torch, subject)
        indices = {index for kind, index in found if kind == "cuda"}
        if len(indices) == 1:
            self._device = indices.pop()
            self._timeline.due = self._timeline.ticks + 1
            self._stream = self._events.stream(self._device or 0)
        elif indices:
            self._later(why.SEVERAL)
        elif any(kind == "cpu" for kind, _ in found):
            self._later(why.ON_CPU)
        else:
            # A loss has no parameters, say. The model or the optimizer may follow in this step.
            self._blind += 1
            if self._blind % _BLIND == 0:
                self._later(why.UNKNOWN)

    def _later(self, because: str) -> None:
        """Try again after some steps, and after ever more of them while it does not work."""
        if not self.resolved:
            self.because = because
        self._timeline.due = self._timeline.ticks + self._wait
        self._wait = min(2 * self._wait, _LONGEST)

    def _abandon(self, because: str) -> bool:
        sample, self._sample = self._sample, None
        if sample is not None:
            self._events.release(sample)
            self.dropped += 1
        self._later(because)
        return False

    # -- times, when the device is there ---------------------------------------------------------

    def _resolve(self) -> None:
        while self._pending:
            times = self._events.resolve(self._pending[0])
            if times is None:
                return
            self._events.release(self._pending.popleft())
            self.resolved += 1
            self.because = None
            for account, ns in times.items():
                self._times[account] = self._times.get(account, 0) + ns

    def _gave_up_oldest(self) -> bool:
        if perf_counter_ns() - self._pending[0].closed_ns < PATIENCE_NS:
            return False
        self._events.release(self._pending.popleft())
        self.dropped += 1
        return True

    def write(self) -> None:
        """Write what has been resolved so far; called by the journal now and then."""
        if not self._timeline.ticks:
            return
        if self._pending:
            try:
                if not self._events.capturing():
                    self._resolve()
            except Exception as error:
                self._fail(error)
        state = (self.because, self.resolved, self.dropped)
        if state == self._written:
            return
        self._written = state
        add: Callable[[bytes], None] = self._journal.recording.add
        facts = {
            "device_clock": self.because,
            "device_samples": self.resolved,
            "device_dropped": self.dropped,
        }
        add(frames.encode_json("fact", facts))
        if self.resolved:
            rows = [
                {"phase": STEP_PHASES[account], "steps": self.resolved, "ns": ns}
                for account, ns in sorted(self._times.items())
            ]
            add(frames.encode_json("devc", rows))

    def _fail(self, error: BaseException) -> None:
        """Be silent from now on; what was resolved before stays true."""
        self._timeline.due = _NEVER
        self._sample = None
        _left_behind.append(self._pending)
        self._pending = deque()
        text = f"{type(error).__name__}: {error}"
        if not self.resolved:
            self.because = f"the device's events failed: {text.splitlines()[0][:200]}"
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = "".join(f" ({Path(one.filename).name}:{one.lineno})" for one in last)
        fault = {
            "site": "device_clock",
            "error": f"{text[:400]}{where}",
            "at_ns": perf_counter_ns(),
        }
        self._journal.recording.add(frames.encode_json("falt", fault))
