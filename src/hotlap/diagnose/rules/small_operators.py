"""# HL304 small-operators: a Python loop calls many small operators

**What.** A loop over time steps, samples, heads or layers calls operators that are each so small
that calling them costs more than their arithmetic; the backward pass repeats every one of them.

**How it is measured.** Sampled stacks give the loop's share; torch.profiler gives the number of
operators per step below its lines and their mean time. The backward pass is counted in proportion.

**When it is wrong.** Loops over a few large layers, or over fused ones (`nn.LSTM` chunk by chunk):
their operators are long, or each is called a few times only, and the rule is silent.

**What to do.** Do the whole dimension at once: a batched operator, a fused layer (`nn.LSTM`,
scaled_dot_product_attention), or `torch.compile`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import median

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.compute import LONGEST_BACKWARD
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.loops import loop_around
from hotlap.diagnose.operators import all_operators, operators_at
from hotlap.diagnose.passes import backward_of
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, percent, text_of
from hotlap.diagnose.shares import step_share
from hotlap.diagnose.step_lines import training_function
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL304"
NAME = "small-operators"
_MANY = 30
_SMALL_NS = 12_000
"""Calling an operator from Python takes some 3 to 10 us on the processors of these years: a mean
above it says that the arithmetic, not the calling, is what takes the time."""
_TURNS = 12
"""Times that the loop goes round, as far as the calls of its operators tell: a loop over the layers
of a model goes round fewer times, and nothing about it can be vectorised."""
_FUSED = re.compile(r"lstm|gru|rnn|scaled_dot_product|transformer_encoder")
"""What the remedy would put in the loop's place: the small operators are its own parts."""
_PHASES = ("forward", "other")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge loops of operators in the training step."""
    loops = _loops(facts)
    if not loops:
        return Clear("no loop in the step takes long")
    if not all_operators(facts):
        return Unknown("operators were not profiled")
    heaviest = sorted(loops.items(), key=lambda one: -sum(cost.share for cost in one[1]))
    for loop, costs in heaviest:
        found = _judged(facts, loop, costs)
        if found is not None:
            return found
    return Clear("the loops in the step call few or large operators")


def _loops(facts: Facts) -> dict[Place, list[Cost]]:
    """Return the costs of the step that lie in a loop, or in a function called from one."""
    costs = costs_of(facts)
    training = training_function(costs)
    groups: dict[Place, list[Cost]] = defaultdict(list)
    for cost in costs:
        if cost.phase in _PHASES and cost.role == "trainer":
            key = loop_around(facts, cost, training)
            if key is not None:
                groups[key].append(cost)
    return groups


def _turns(facts: Facts, costs: list[Cost]) -> float:
    """Return how often per step an operator of these lines is called, the middle one of all."""
    keys = {one.key for one in costs}
    calls = [
        one.calls
        for one in all_operators(facts)
        if one.place is not None and f"{one.place.file}:{one.place.line}" in keys
    ]
    return median(calls) if calls else 0.0


def _judged(facts: Facts, loop: Place, costs: list[Cost]) -> Finding | None:
    region = region_of(costs, costs_of(facts))
    operators = operators_at(facts, {one.key for one in costs})
    if region is None or operators is None:
        return None
    if operators.calls < _MANY or operators.mean_ns > _SMALL_NS or _turns(facts, costs) < _TURNS:
        return None
    if sum(ns for name, ns in operators.names if _FUSED.search(name)) > 0.5 * operators.ns:
        return None
    forward = step_share(facts, "forward") or 0.0
    backward = step_share(facts, "backward") or 0.0
    part = min(1.0, region.share / forward) if forward else 0.0
    # What a backward pass takes beyond that has a cause of its own.
    backward = min(backward, LONGEST_BACKWARD * forward)
    behind = part * backward if region.top.phase == "forward" else 0.0
    of_lines = backward_of(facts)
    if behind and of_lines:
        behind = min(backward, sum(of_lines.get(key, 0.0) for key in region.keys))
    share = min(0.99, region.share + behind)
    if not worth(facts, share):
        return None
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase=region.top.phase,
            share=predict.recoverable(share, least=0.8),
            first=loop,
            remedy=Remedy("code", ("compile",), "the last bits of sums"),
            say=(
                f"A Python loop ({loop.file}:{loop.line}) calls {operators.calls:.0f} small "
                "operators "
                f"in each step, {operators.mean_ns / 1000:.0f} us each, and with their backward "
                "passes "
                f"that is {percent(share)} of the time: {text_of(facts, region.top)} at "
                f"{at(region.line)}. Vectorise it: one batched operator or a fused layer for the "
                "whole "
                f"dimension, instead of one call per element."
            ),
            evidence=(
                Evidence("operators below the loop", round(operators.calls), "per step"),
                Evidence("mean operator", round(operators.mean_ns / 1000, 1), "us"),
            ),
        ),
    )
