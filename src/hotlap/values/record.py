"""What a run directory holds, decoded: the raw material of every report.

All times are integer nanoseconds; ``*_ns`` instants are of the monotonic clock, which all
processes of one host share. ``None`` means that the value was not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotlap.values.trace import TrainingTrace
    from hotlap.values.trial import OperatorEntry, ProfileEntry, WindowResult


@dataclass(frozen=True)
class Place:
    """A line of the user's source; ``file`` is relative to the start directory if inside it."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Tick:
    """One end of a step, or of a part of a cycle of optimizers, in full detail.

    number: 1-based count of ticks in this process.
    end_ns: monotonic instant of the end.
    rule: what ended it: ``optimizer``, ``explicit``, ``loader`` or ``backward``.
    optimizer: ordinal of the optimizer that stepped (0-based); -1 under other rules, and where
        optimizers (one per layer) step inside a backward pass.
    accounts: nanoseconds since the previous tick, one per name in ``ACCOUNTS``.
    batches, forwards, backwards: counts since the previous tick.
    cpu_ns: CPU time of the training thread since the previous tick.
    epoch_first: a training loader gave its first batch of an epoch since the previous tick.
    """

    number: int
    end_ns: int
    rule: str
    optimizer: int
    accounts: tuple[int, ...]
    batches: int
    forwards: int
    backwards: int
    cpu_ns: int | None
    epoch_first: bool


@dataclass(frozen=True)
class Window:
    """A stretch of consecutive ticks, summed. The windows of a process cover all its ticks once.

    steps: cycles that closed in it, by the process's own reading of the optimizers' order.
    ticks: ticks in it; ``by_optimizer`` splits them by optimizer ordinal (key -1: other rules).
    histogram: step times, ``{bucket: count}`` of ``stats.histogram`` buckets.
    accounts: nanoseconds, one per name in ``ACCOUNTS``.
    """

    first_tick: int
    ticks: int
    steps: int
    begin_ns: int
    end_ns: int
    rule: str
    by_optimizer: dict[int, int]
    histogram: dict[int, int]
    accounts: tuple[int, ...]
    batches: int
    forwards: int
    backwards: int
    cpu_ns: int | None
    before_forward_ns: int | None = None
    """Of the account ``other``: what lies between a tick and the first forward pass after it."""


@dataclass(frozen=True)
class Loader:
    """A DataLoader that the process made. ``role``: ``training``, ``evaluation`` or ``unknown``."""

    ordinal: int
    dataset: str
    place: Place | None
    batch_size: int | None
    workers: int
    length: int | None
    iterable: bool
    pin_memory: bool
    prefetch: int | None
    persistent: bool
    role: str = "unknown"
    base_seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fetches:
    """Batches that one worker (or, at 0 workers, the training thread) prepared, summed.

    worker: worker id; None when the training thread fetched.
    wall_ns = cpu_ns + runqueue_ns + blocked_ns, collate included in all four.
    runqueue_ns: None where the kernel does not tell; then ``blocked_ns`` is an upper bound.
    collate_ns: wall time inside the collate function; ``collate_cpu_ns`` its thread CPU time.
    ipc_ns: time to serialise the batch for the training process; None at 0 workers.
    asked_bytes, disk_bytes: read by system calls; really from storage (page faults included).
    slowest_ns: wall time of the slowest batch.
    """

    loader: int | None
    worker: int | None
    batches: int
    samples: int | None
    wall_ns: int
    cpu_ns: int
    runqueue_ns: int | None
    blocked_ns: int
    collate_ns: int
    collate_cpu_ns: int
    collate_runqueue_ns: int | None
    ipc_ns: int | None
    asked_bytes: int | None
    disk_bytes: int | None
    slowest_ns: int
    begin_ns: int
    end_ns: int
    base_seed: int | None = None
    dataset: str = ""


@dataclass(frozen=True)
class Touch:
    """Calls of one kind from one line of the user's source.

    kind: ``item``, ``cpu``, ``print`` …; family: ``sync``, ``logging``, ``checkpoint``,
    ``transfer`` or ``communication``. internal: called by a library, not by the user's line.
    ns: host time inside the calls. size_bytes: bytes moved or written; None if unknown.
    """

    family: str
    kind: str
    place: Place | None
    count: int
    ns: int
    size_bytes: int | None = None


@dataclass(frozen=True)
class DevicePhase:
    """Device time of one step phase over sampled steps, from CUDA events resolved late."""

    phase: str
    steps: int
    ns: int


@dataclass(frozen=True)
class Fault:
    """Our own failure inside the training process; the hook named is off from then on."""

    site: str
    error: str
    at_ns: int


@dataclass(frozen=True)
class Process:
    """Everything that one process wrote. ``end_ns`` is None when it left no farewell."""

    host: str
    pid: int
    rank: int | None
    local_rank: int | None
    world_size: int | None
    role: str
    argv: tuple[str, ...]
    python: str
    torch: str | None
    device: str | None
    start_ns: int
    first_step_ns: int | None
    end_ns: int | None
    before_first_step: tuple[int, ...] | None
    """Accounts up to the beginning of the first step, one per name in ``ACCOUNTS``."""
    after_last_tick: tuple[int, ...] | None
    """Accounts from the last tick to the farewell."""
    ticks: tuple[Tick, ...] = ()
    windows: tuple[Window, ...] = ()
    loaders: tuple[Loader, ...] = ()
    fetches: tuple[Fetches, ...] = ()
    unpack_ns: int | None = None
    """Time in which the training process rebuilt batches that workers had serialised."""
    touches: tuple[Touch, ...] = ()
    device_phases: tuple[DevicePhase, ...] = ()
    faults: tuple[Fault, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    windows_measured: tuple[WindowResult, ...] = ()
    """What the windows of a trial measured, in their order."""
    settings_proof: dict[str, Any] = field(default_factory=dict)
    """By the name of a setting that a trial tried: value, acted, proof in words."""
    profile: tuple[ProfileEntry, ...] = ()
    """Sampled stacks of this process and its loaders' workers, in trials that take them."""
    profile_facts: dict[str, Any] = field(default_factory=dict)
    """By role: processes, looks, hz, lasted_ns, cost_ns (CPU time of the samplers), late, late_ns
    (looks that had to wait, and for how long). ``files``: the user's modules, entry script first.
    ``threads``: ``ThreadEntry`` for each Python thread that worked beside the one that trains.
    """
    operators: tuple[OperatorEntry, ...] = ()
    """torch's operators by the user's line, from a window under torch's profiler."""
    collector: dict[str, Any] = field(default_factory=dict)
    """ns, collections, longest_ns, by_generation, by_phase; the same of workers in ``workers``."""
    sample_clock: dict[str, Any] = field(default_factory=dict)
    """count, total_ns, slowest_ns, together, histogram (``stats.histogram``) of single samples."""
    trace: TrainingTrace | None = None
    """What the training did in its first steps, in trials that record it."""


@dataclass(frozen=True)
class Record:
    """A whole run as it lies on disk.

    exit_code: the child's own (negative: killed by that signal); None while it runs or if lost.
    started: ISO 8601 time with offset. spawn_ns, exit_ns: monotonic instants of the child's life.
    samples: machine samples, oldest first, as ``machine.sampler`` wrote them.
    seen: interpreters that started under the run: ``{"pid", "argv", "torch"}``.
    """

    id: str
    path: str
    command: tuple[str, ...]
    cwd: str
    host: str
    hotlap_version: str
    started: str
    spawn_ns: int
    exit_ns: int | None
    exit_code: int | None
    processes: tuple[Process, ...] = ()
    samples: tuple[dict[str, Any], ...] = ()
    seen: tuple[dict[str, Any], ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    """Static facts of the machine, as ``machine.facts`` gave them."""
    plan: dict[str, Any] = field(default_factory=dict)
    """The plan that was applied: file, knobs, step_ns, left_out, differences; empty for none."""
    damage: tuple[str, ...] = ()
    """What could not be read, in words (torn tails, unknown frames)."""
