"""What the backward pass costs by the line of the forward pass that it belongs to.

torch.profiler numbers the operators of the forward pass and tells for each of the backward pass
which number it belongs to (`Profiler recipe`, pytorch.org: ``sequence_nr``). So the one line that
calls ``backward()`` can be divided among the lines whose derivatives it computes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

from hotlap.diagnose.operators import all_operators
from hotlap.diagnose.shares import step_share
from hotlap.values.facts import Facts

_ONLY_FORWARD: Final = re.compile(
    r"^aten::(addmm|linear|convolution|_convolution|mkldnn_convolution|native_layer_norm|"
    r"native_batch_norm|native_group_norm|_softmax|_log_softmax|gelu|silu|relu_?|tanh|sigmoid|"
    r"bernoulli_|native_dropout|embedding|lstm|gru|max_pool2d_with_indices|"
    r"_scaled_dot_product\w*attention\w*(?<!backward))$"
)
"""Operators that no derivative calls: seen in a backward pass, a forward pass is done again."""


def backward_of(facts: Facts) -> dict[str, float]:
    """Return per ``file:line`` of the forward pass its share (0-1) of the whole in backward.

    Empty where operators were not profiled or the backward pass was not measured.
    """
    backward = step_share(facts, "backward")
    rows = [one for one in all_operators(facts) if one.phase == "backward"]
    whole = sum(one.ns for one in rows)
    if not backward or not whole:
        return {}
    found: dict[str, float] = defaultdict(float)
    for one in rows:
        if one.forward is not None:
            found[f"{one.forward.file}:{one.forward.line}"] += backward * one.ns / whole
    return dict(found)


def recomputed(facts: Facts) -> float | None:
    """Return the part (0-1) of the forward pass that the backward pass computes once more.

    By the time of operators that only a forward pass calls. None where none was profiled.
    """
    first: dict[str, float] = defaultdict(float)
    again: dict[str, float] = defaultdict(float)
    for one in all_operators(facts):
        if not _ONLY_FORWARD.match(one.name):
            continue
        if one.phase == "backward":
            again[one.name] += one.ns
        else:
            first[one.name] += one.ns
    whole = sum(first.values())
    if not whole:
        return None
    return sum(min(again.get(name, 0.0), ns) for name, ns in first.items()) / whole
