"""Which experiments would settle what one run only suggests, dearest suspicion first."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.build import worth
from hotlap.diagnose.input import best_point, epoch_edge_share, input_of
from hotlap.diagnose.operators import written_out_attention
from hotlap.diagnose.passes import recomputed
from hotlap.diagnose.shares import is_cpu, phase_share, step_share
from hotlap.diagnose.switches import RECOMPUTES, first_setting, truthy
from hotlap.values.facts import Facts
from hotlap.values.shares import cores_of_rank


def wishes(facts: Facts) -> tuple[tuple[str, Any], ...]:
    """Return changes worth a trial, ``(name, value)`` as ``TrialPlan.settings`` takes them.

    The order is by what the phase that a change could help costs now.
    """
    wanted: list[tuple[float, str, Any]] = []
    _switches(facts, wanted)
    _input(facts, wanted)
    _compute(facts, wanted)
    return tuple((name, value) for _, name, value in sorted(wanted, key=lambda one: -one[0]))


def _switches(facts: Facts, wanted: list[tuple[float, str, Any]]) -> None:
    on = facts.defaults.get("anomaly")
    if on or first_setting(facts, ("detect_anomaly", "set_detect_anomaly"), truthy):
        wanted.append((2.0, "anomaly_mode", False))
    again = recomputed(facts)
    forward = step_share(facts, "forward") or 0.0
    if first_setting(facts, RECOMPUTES, truthy) is not None or worth(facts, forward * (again or 0)):
        wanted.append((forward, "activation_checkpointing", False))


def _input(facts: Facts, wanted: list[tuple[float, str, Any]]) -> None:
    data = input_of(facts)
    if data is None or data.loader is None:
        return
    cores = cores_of_rank(facts)
    best = best_point(facts)
    if worth(facts, data.wait):
        if data.workers == 0:
            count = best.workers if best and best.workers else cores
            wanted.append((data.wait, "loader_workers", count))
        elif data.workers > cores:
            knee = best.workers if best and 0 < best.workers < data.workers else cores
            wanted.append((data.wait, "loader_workers", knee))
        if data.workers and first_setting(facts, ("set_num_threads", "threads")):
            wanted.append((data.wait, "worker_threads", 1))
    if data.workers and worth(facts, epoch_edge_share(facts)):
        wanted.append((epoch_edge_share(facts), "persistent_workers", True))


def _compute(facts: Facts, wanted: list[tuple[float, str, Any]]) -> None:
    optimizer = step_share(facts, "optimizer")
    if worth(facts, optimizer) and (optimizer or 0.0) >= 0.15:
        wanted.append((optimizer or 0.0, "fused_optimizer", True))
    lines, attention = written_out_attention(facts)
    if lines and worth(facts, attention):
        wanted.append((attention, "attention_weights", False))
    if not is_cpu(facts):
        return
    compute = sum(phase_share(facts, name) or 0.0 for name in ("forward", "backward", "optimizer"))
    if compute < 0.3:
        return
    cores = cores_of_rank(facts)
    now = facts.defaults.get("threads")
    if isinstance(now, int):
        if now < cores:
            wanted.append((0.8 * compute, "intra_op_threads", cores))
        elif now > 1:
            wanted.append((0.3 * compute, "intra_op_threads", 1))
    wanted.append((0.25 * compute, "flush_denormal", True))
