"""What experiments found out about one command on one machine: the only input of diagnosis.

Each field is a value with its origin, or ``Missing`` with the reason in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hotlap.values.record import Place
from hotlap.values.summary import RunSummary
from hotlap.values.trial import NativeEntry, OperatorEntry, ProfileEntry, ThreadEntry

T = TypeVar("T")


@dataclass(frozen=True)
class Missing:
    """Not measured, and why, in words that a user understands."""

    because: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class Measured(Generic[T]):
    """A value with its origin: which trial and which window, in words.

    low, high: a 95 % interval where one could be had.
    """

    value: T
    origin: str
    low: T | None = None
    high: T | None = None


@dataclass(frozen=True)
class WorkerPoint:
    """The loader alone with so many workers: samples per second, with its interval."""

    workers: int
    per_s: float
    low: float
    high: float


@dataclass(frozen=True)
class Storage:
    """The same samples prepared one after the other, from storage and from the page cache.

    samples: how many. files, file_bytes: that they read. cold_ns, warm_ns: wall time of each pass.
    cold_blocked_ns, warm_blocked_ns: of that, neither working nor waiting for a core.
    read_bytes: from storage, in the cold pass; None where the kernel does not tell.
    """

    samples: int
    files: int
    file_bytes: int
    cold_ns: int
    warm_ns: int
    cold_blocked_ns: int
    warm_blocked_ns: int
    read_bytes: int | None


@dataclass(frozen=True)
class EpochEnd:
    """What comes at the end of an epoch, of one that was ended before its time.

    steps: of a whole epoch. phases: nanoseconds by run phase, from its last step to the first of
    the next. profile: where they went. whole: the next epoch was reached; else they are at least
    so long.
    """

    steps: float
    phases: Mapping[str, int]
    profile: tuple[ProfileEntry, ...]
    whole: bool


@dataclass(frozen=True)
class Setting:
    """Something that the user's code sets: a call or an argument, found in the source.

    name: ``detect_anomaly``, ``set_num_threads``, ``num_workers``, ``persistent_workers`` …
    value: the literal, or the source text where it is none.
    """

    name: str
    value: Any
    place: Place


@dataclass(frozen=True)
class WhatIf:
    """One change tried against the baseline, interleaved: how much faster the steps were.

    ratio: baseline time over changed time; above 1 is faster.
    """

    change: str
    value: Any
    ratio: float
    low: float
    high: float
    acted: bool


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's source that the profile names.

    text: stripped. loops: lines of the ``for`` and ``while`` statements around it in the same
    function, outermost first. function_line: where its function begins. comprehension: the line
    itself holds a comprehension or generator.
    """

    place: Place
    text: str
    loops: tuple[int, ...] = ()
    function_line: int | None = None
    comprehension: bool = False


@dataclass(frozen=True)
class Facts:
    """All that is known about one command. Rates are samples per second.

    run: the account of the watched trial, which ran as the user would run it.
    whole_run: the watched trial came to its own end, so its shares are those of the whole run.
    profile: sampled stacks of trainer and workers of the watched trial.
    source: the user's lines that the profile names, by ``"file:line"``. threads: Python threads
    that worked beside the one that trains.
    step_series: step times of the watched trial in order, at most 4,000, evenly thinned.
    noise: relative difference of two equal windows (A/A), 95 %: what can be told apart here, now.
    compute_per_s, loader_per_s, prep_per_s, fetch_per_s: the ceilings of DESIGN §4.
    native: functions of C and C++ below the user's lines. storage: some samples cold and warm, by
    one reader. epoch_end: what comes between two epochs, where the watched trial did not come to
    it.
    sample_ns: quantiles of single samples' times, ``{"p50", "p90", "p99", "max", "mean"}``.
    settings: what the user's code sets. defaults: what torch's switches were during the steps
    (``grad_mode``, ``anomaly``, ``threads``, ``parameter_dtypes``, ``foreach`` …), and what was
    seen of the batches (``padded_width``, ``epoch_batches`` …).
    counts: per step and per run: ``forwards``, ``backwards``, ``gc_ns``, ``collections`` …
    """

    run: RunSummary
    whole_run: bool = False
    profile: Measured[tuple[ProfileEntry, ...]] | Missing = Missing("no profile was taken")
    source: Mapping[str, SourceLine] = field(default_factory=dict)
    operators: Measured[tuple[OperatorEntry, ...]] | Missing = Missing("not profiled")
    threads: tuple[ThreadEntry, ...] = ()
    step_series: tuple[int, ...] = ()
    noise: Measured[float] | Missing = Missing("no repeat was made")
    compute_per_s: Measured[float] | Missing = Missing("no replay was made")
    loader_per_s: Measured[float] | Missing = Missing("the loader was not drained")
    prep_per_s: Measured[float] | Missing = Missing("the loader was not drained")
    fetch_per_s: Measured[float] | Missing = Missing("the loader was not drained")
    storage: Measured[Storage] | Missing = Missing("it was not tried")
    epoch_end: Measured[EpochEnd] | Missing = Missing("it was not tried")
    native: Measured[tuple[NativeEntry, ...]] | Missing = Missing("it was not tried")
    samples_per_step: float | None = None
    curve: tuple[WorkerPoint, ...] = ()
    sample_ns: Mapping[str, int] | None = None
    settings: tuple[Setting, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    what_ifs: tuple[WhatIf, ...] = ()
    trials: tuple[Mapping[str, Any], ...] = ()
    not_measured: tuple[tuple[str, str], ...] = ()
