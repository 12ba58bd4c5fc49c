"""Knobs that only help together, where that is known before anything is tried.

Workers and the operators of a training on CPUs want the same cores: with as many threads as cores
an operator waits for its slowest thread, which a worker keeps from its core, and each step becomes
longer than it was without workers. So a number of workers is also tried with as many threads as
cores are left. (PyTorch's own launcher divides cores among processes for the same reason.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotlap.values.knob import Case
from hotlap.values.shares import cores_of_rank, is_cpu


def companions(knob: str, value: Any, case: Case) -> Mapping[str, Any]:
    """Return knobs, with values, that a knob should also be tried with; empty for none."""
    if knob != "loader_workers" or not value or not is_cpu(case.facts):
        return {}
    threads = max(1, cores_of_rank(case.facts) - int(value))
    now = case.applied.get("intra_op_threads", case.facts.defaults.get("threads"))
    if not isinstance(now, int) or now <= threads:
        return {}
    if any(name in case.environ for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")):
        return {}  # the user's word
    return {"intra_op_threads": threads}
