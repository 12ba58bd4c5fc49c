"""All rules, in the order in which they are asked. A new rule is one file and one line here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol, cast

from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Finding, Unknown


class Rule(Protocol):
    """A rule's module."""

    CODE: str
    NAME: str
    __doc__: str
    check: Callable[[Facts], Finding | Clear | Unknown]


RULES: Final[tuple[str, ...]] = (
    "input_serial",
    "input_too_many_workers",
    "input_worker_threads",
    "input_slow_sample",
    "input_blocked",
    "input_collate",
    "input_sampler",
    "input_epoch_edge",
    "input_handover",
    "input_tiny_samples",
    "small_cache",
    "input_scattered_rows",
    "input_rebuilt",
    "input_repeated_work",
    "input_cpu_work",
    "anomaly_mode",
    "double_precision",
    "intra_op_threads",
    "parametrization",
    "small_operators",
    "optimizer_loop",
    "low_precision",
    "attention_weights",
    "recompiles",
    "denormals",
    "repeated_passes",
    "frozen_gradients",
    "discarded_gradients",
    "unused_rows",
    "retained_graph",
    "recomputation",
    "backward_in_loop",
    "passes_beside",
    "dispatch_mode",
    "closure_twice",
    "parameter_penalty",
    "lopsided_step",
    "padding",
    "dense_tables",
    "host_in_model",
    "console_and_logs",
    "host_code",
    "garbage",
    "straggler",
    "gradient_sync",
    "busy_thread",
    "repeated_handlers",
    "broadcast_buffers",
    "communication",
    "growth",
    "checkpoints",
    "evaluation",
    "evaluation_graph",
    "start_up",
    "shut_down",
    "general",
)
"""Names of the modules in ``hotlap.diagnose.rules``."""


def all_rules() -> Iterator[Rule]:
    """Import and yield every rule."""
    for name in RULES:
        yield cast("Rule", importlib.import_module(f"hotlap.diagnose.rules.{name}"))


def rule(code: str) -> Rule | None:
    """Return the rule of a code such as ``HL101``, in either case; None if there is none."""
    return next((one for one in all_rules() if code.upper() == one.CODE), None)
