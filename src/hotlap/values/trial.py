"""What a trial is told to do inside, and what its windows and its profile say afterwards.

A trial is one child process; a window is one condition inside it. The outside writes a
``TrialPlan`` into the handoff; the inside answers with ``WindowResult`` and ``ProfileEntry``
records in the process's own file. All times are integer nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from hotlap.values.record import Place

WINDOW_KINDS: Final[tuple[str, ...]] = (
    "warm_up",
    "baseline",
    "replay",
    "drain",
    "workers",
    "storage",
    "operators",
    "epoch_end",
    "native",
)
"""``warm_up``: not measured. ``baseline``: as it stands. ``replay``: recorded batches instead of
the training loader's, its workers stopped. ``drain``: the training loader alone, at its own
settings. ``workers``: the same with ``workers`` workers. ``storage``: some samples read from
storage, then from memory. ``operators``: under torch.profiler.
``epoch_end``: the training loader ends its epoch at once, and the next one begins.
``native``: as it stands, and other processes of this user may look inside."""

STATES: Final[tuple[str, ...]] = ("working", "blocked", "runqueue")
"""What a thread does: on a core, waiting for something, waiting for a core."""


@dataclass(frozen=True)
class WindowPlan:
    """One condition: how long it lasts at most, whichever bound comes first.

    kind: of ``WINDOW_KINDS``. steps: training steps (batches in ``drain`` and ``workers``, samples
    in ``storage``).
    seconds: wall time. workers: for kind ``workers``.
    """

    kind: str
    steps: int
    seconds: float
    workers: int | None = None


@dataclass(frozen=True)
class TrialPlan:
    """What happens inside one trial, in this order, then the clean stop.

    windows: empty for a trial that runs as it stands. stop_after_s: clean stop at the next end of
    a step when the process has lived that long; None for never. sample_hz: rate of the sampling
    profiler in trainer and workers; None for off. clock_samples: clock every single sample that
    a data set returns. settings: changes for what-if trials, by name (``anomaly_mode``: False,
    ``intra_op_threads``: 2, ``loader_workers``: 2, ``persistent_workers``: True ...).
    sample_switch_s: how long the profiler waits for the interpreter while no third thread runs
    Python code; None for as long as any thread does (5 ms): Python code that runs for less is then
    seen at the next call that gives the interpreter away.
    trace: so many steps are recorded as a ``TrainingTrace``, then the clean stop; None for off.
    trace_s: it ends this long after the first step at the latest.
    """

    windows: tuple[WindowPlan, ...] = ()
    stop_after_s: float | None = None
    sample_hz: float | None = None
    clock_samples: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    sample_switch_s: float | None = None
    trace: int | None = None
    trace_s: float = 600.0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> TrialPlan:
        """Read the JSON form; raises KeyError or TypeError where it is none."""
        return cls(
            windows=tuple(WindowPlan(**one) for one in raw.get("windows", ())),
            stop_after_s=raw.get("stop_after_s"),
            sample_hz=raw.get("sample_hz"),
            clock_samples=bool(raw.get("clock_samples", False)),
            settings=dict(raw.get("settings", {})),
            sample_switch_s=raw.get("sample_switch_s"),
            trace=raw.get("trace"),
            trace_s=float(raw.get("trace_s", 600.0)),
        )


@dataclass(frozen=True)
class WindowResult:
    """What one window measured.

    steps: ends of steps seen in it. batches, samples: delivered in it (samples None where a
    batch's size could not be told). accounts: nanoseconds, one per name in ``ACCOUNTS``.
    step_ns: step times, in order, at most 2,000. spans_ns: wall times of at most 240 stretches of
    the same number of steps, by ``WindowPlan.steps``, with all that lies between the steps.
    split: for loader windows, summed over batches:
    ``wall_ns``, ``cpu_ns``, ``runqueue_ns``, ``blocked_ns``, ``collate_ns`` (None where not told);
    in ``storage`` ``cold_wall_ns``, ``warm_wall_ns`` and so on, ``files`` and ``file_bytes``.
    ended_by: ``steps``, ``seconds``, ``exhausted``, ``run ended`` or ``failed: …`` in words.
    """

    kind: str
    workers: int | None
    begin_ns: int
    end_ns: int
    steps: int
    batches: int
    samples: int | None
    accounts: tuple[int, ...]
    step_ns: tuple[int, ...] = ()
    spans_ns: tuple[int, ...] = ()
    split: Mapping[str, int | None] = field(default_factory=dict)
    ended_by: str = ""
    notes: tuple[str, ...] = ()
    """What limits the figure, in words: ``the script changes its batches in place`` …"""


@dataclass(frozen=True)
class ProfileEntry:
    """Time of one thread at one place of the user's source, from samples of its stack.

    role: ``trainer`` or ``worker``. phase: the account that was open (trainer), or ``fetch``,
    ``collate`` or ``idle`` (worker); before the first step ``start_up``, after the last
    ``shut_down``.
    place: the innermost frame of the user's own; None where the stack had none.
    expression: source text of the innermost call that was running there (Python 3.11 and newer),
    at most 200 characters; None where it is not known.
    callers: the user's other frames, from the inside out, at most 6.
    leaf: the innermost Python function, as ``module.function``.
    working_ns, blocked_ns, runqueue_ns: how the thread spent the time; None where the kernel does
    not tell. over_time: samples in 16 equal parts of the time from first step to the end.
    span: where the innermost operation running there lies in the file: line, last line, column
    and last column in bytes of UTF-8, as ``code.co_positions``; what ``expression`` is cut by.
    """

    role: str
    phase: str
    place: Place | None
    expression: str | None
    callers: tuple[Place, ...]
    leaf: str
    samples: int
    ns: int
    working_ns: int | None
    blocked_ns: int | None
    runqueue_ns: int | None
    over_time: tuple[int, ...] = ()
    span: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class OperatorEntry:
    """torch operators called from one line of the user's, per step, from torch.profiler.

    place: the innermost frame of the user's own above the operator. name: ``aten::mm`` …
    calls, ns: per step; ns is the operator's own time. shapes: how many different input shapes.
    dtypes: names of the input types seen.
    until: the operator may stand on any line from that of ``place`` to this one; None where the
    line is known. forward: of a backward operator, the line of the forward pass that recorded it;
    ``place`` is then that of the backward pass.
    """

    place: Place | None
    phase: str
    name: str
    calls: float
    ns: float
    shapes: int | None = None
    dtypes: tuple[str, ...] = ()
    until: int | None = None
    forward: Place | None = None


@dataclass(frozen=True)
class NativeEntry:
    """A native function that runs below one line of the user's, by stacks from outside.

    function: as its library names it, None where the library tells no names. library: without
    version and suffix; None where it is not known. share: of the samples of the line (0-1).
    samples: of the line.
    """

    place: Place
    function: str | None
    library: str | None
    share: float
    samples: int


@dataclass(frozen=True)
class ThreadEntry:
    """A Python thread of the training process beside the one that trains.

    name: as ``threading`` has it. leaf: the innermost function in which it mostly was, as
    ``module.function``. place: the user's line above that; None where there was none. cpu_ns: time
    on a core; of wall_ns in which it was looked at, after the first step.
    """

    name: str
    leaf: str
    place: Place | None
    cpu_ns: int
    wall_ns: int
