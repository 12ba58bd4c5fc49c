"""The model's side of a step: which lines are the model's arithmetic, which are beside it."""

from __future__ import annotations

import re

from hotlap.diagnose.costs import Cost
from hotlap.diagnose.operators import operators_at
from hotlap.diagnose.say import line_of
from hotlap.diagnose.work import is_never_arithmetic, kind_of
from hotlap.values.facts import Facts

MODEL_PHASES = ("forward", "backward", "optimizer")
LONGEST_BACKWARD = 3.0
"""In forward passes: a backward pass that goes through each operator once takes one to three."""
_TORCH_CALL = re.compile(
    r"\b(torch|F|nn|functional)\.\w|\bself\.\w+\(|@|\bcriterion\(|\bmodel\(|\bloss\w*\("
)
_TORCH_LEAF = (
    "torch.nn.",
    "torch.optim",
    "torch.autograd",
    "torch.functional",
    "torch._tensor",
    "torch._ops",
)


def is_models_own(facts: Facts, cost: Cost) -> bool:
    """Tell whether a line is the model's own arithmetic, which nobody would call a waste.

    Known by torch's layers in the stack, else by its operators where they were profiled.
    """
    kind = kind_of(cost)
    if is_never_arithmetic(kind):
        return False
    if cost.spent_in(*_TORCH_LEAF) >= 0.5:
        return True  # also blocked: a layer waits for the other threads of its own operator
    operators = operators_at(facts, [cost.key])
    if operators is not None:
        return operators.heavy_share >= 0.3
    if cost.state == "blocked":
        return False
    line = line_of(facts, cost.place)
    text = cost.expression or (line.text if line else "")
    return kind is None and bool(_TORCH_CALL.search(text))


def in_loop(facts: Facts, cost: Cost) -> int | None:
    """Return the line of the innermost loop around a line within its function, or None."""
    line = line_of(facts, cost.place)
    return line.loops[-1] if line and line.loops else None
