"""# HL324 dispatch-mode: every operation goes through Python, because something watches them

**What.** A counter of operations, a tracker of modules or another mode of torch's dispatcher is on
while the model trains (`FlopCounterMode`, a `TorchDispatchMode` or `TorchFunctionMode` of one's
own). Each operator of the forward and the backward pass then makes a detour through Python.

**How it is measured.** Sampled stacks inside of such modes, and in the calls by which they hand
operators on.

**When it is wrong.** Where the mode is what makes the training right (a tensor type of one's own):
then its cost is what it is.

**What to do.** Count one step and leave the mode: the number is the same at each step.
"""

from __future__ import annotations

import re

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, percent
from hotlap.diagnose.switches import first_setting
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL324"
NAME = "dispatch-mode"
_MODES = re.compile(
    r"^torch\.utils\.(flop_counter|_python_dispatch|module_tracker|_device|_content_store)\b|"
    r"^(?!torch\.(_|fx|distributed)).*__torch_(dispatch|function)__"
)
"""Those of torch's private packages are what torch.compile and distributed tensors are made of."""
_SEEN = 0.01
"""Share of the run in which a mode itself has to be seen: one that is on shows at each operator."""
_HANDED_ON = re.compile(r"^torch\._ops\.OpOverload\.")
"""Where a mode calls the operator itself; the graphs of torch.compile do that as well."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge modes of the dispatcher that are on in the steps."""
    costs = [one for one in costs_of(facts) if one.role == "trainer"]
    named = [one for one in costs if _part(one, _MODES)]
    modes = sum(one.share * _part(one, _MODES) for one in named)
    if modes < _SEEN:
        return Clear("no operator goes through Python")
    region = region_of([one for one in costs if _through(one)], costs)
    if region is None:
        return Clear("few operators go through Python")
    share = sum(one.share * _through(one) for one in region.costs)
    if not worth(facts, share):
        return Clear("operators that go through Python take little time")
    first = first_setting(facts, ("dispatch_mode",)) or _entered(named)
    who = sorted({_who(leaf) for one in named for leaf, _ in one.leaves if _MODES.search(leaf)})
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase=region.top.phase,
            share=predict.recoverable(share, least=0.8),
            first=first,
            reason=True,
            remedy=Remedy("code", (), "what is counted: once, not at each step"),
            say=(
                f"{percent(share)} of the time every operation takes a detour through Python, "
                f"forward and backward, because a mode of torch's dispatcher watches them "
                f"({', '.join(who[:3])}){f', entered at {at(first)}' if first else ''}. If it "
                "counts or measures (FLOPs, modules), do that in one step and leave the mode: the "
                "number is the same at each step."
            ),
            evidence=(Evidence("through Python", round(share, 3), "share of the run"),),
        ),
    )


def _part(cost: Cost, pattern: re.Pattern[str]) -> float:
    whole = sum(ns for _, ns in cost.leaves)
    return sum(ns for leaf, ns in cost.leaves if pattern.search(leaf)) / whole if whole else 0.0


def _through(cost: Cost) -> float:
    """Return which part (0-1) of a line's time is in modes, and in what they hand on."""
    return _part(cost, _MODES) + _part(cost, _HANDED_ON)


def _entered(named: list[Cost]) -> Place | None:
    """Return the line that enters or leaves a mode, as far as it was seen to do so."""
    for one in named:
        if any("__enter__" in leaf or "__exit__" in leaf for leaf, _ in one.leaves):
            return one.place
    return None


def _who(leaf: str) -> str:
    return leaf.rpartition(".")[0] or leaf
