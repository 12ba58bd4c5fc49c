"""All knobs, in the order in which they are put on. A new knob is one file and one line here.

Where two wrap the same function, the later one is called first: how many workers a loader has is
decided before what depends on it, and a model is compiled within autocast, not the other way.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, Protocol, cast

from hotlap.errors import WrongUse
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer


class Knob(Protocol):
    """A knob's module. NUMERICS: the classes that it may have, as ``Offer.numerics``."""

    NAME: str
    PHASE: str
    NUMERICS: tuple[str, ...]
    __doc__: str
    applies: Callable[[Case], Offer | No]
    environment: Callable[[Any, Mapping[str, str]], dict[str, str]]
    apply: Callable[[Target, Any], None]
    snippet: Callable[[Any], str]


KNOBS: Final[tuple[str, ...]] = (
    "allocator",
    "anomaly_mode",
    "flush_denormal",
    "intra_op_threads",
    "worker_threads",
    "matmul_precision",
    "fused_optimizer",
    "foreach_optimizer",
    "zero_grad_to_none",
    "activation_checkpointing",
    "attention_weights",
    "evaluation_without_grad",
    "gc_control",
    "cuda_allocator",
    "cudnn_benchmark",
    "ddp_bucket_view",
    "ddp_unused_parameters",
    "compile",
    "channels_last",
    "autocast",
    "batched_fetch",
    "compact_hand_over",
    "pinned_memory",
    "prefetch_depth",
    "persistent_workers",
    "loader_workers",
)
"""Names of the modules in ``hotlap.knobs`` that are knobs."""


def load(name: str) -> Knob:
    """Import a knob; raises WrongUse where there is none of that name."""
    if name not in KNOBS:
        near = get_close_matches(name, KNOBS, 3, 0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else "docs/knobs lists them all"
        raise WrongUse(f"hotlap has no knob {name!r}; {hint}")
    return cast("Knob", importlib.import_module(f"hotlap.knobs.{name}"))


def all_knobs() -> Iterator[Knob]:
    """Import and yield every knob, in order."""
    return map(load, KNOBS)
