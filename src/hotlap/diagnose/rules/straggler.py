"""# HL501 straggler: one rank is slower, and the others wait for it

**What.** Ranks meet at every reduction; the slowest sets the pace. The innocent ranks show long
backward passes or collectives, because that is where they wait.

**How it is measured.** Each rank's own work per step (waiting for data, forward, other) against
the others'. The culprit is the rank that waits least in the meeting place and works most before
it. A longer forward pass counts with its backward pass, which cannot be compared: that of the
others contains their wait.

**When it is wrong.** Ranks that take turns in being slow (uneven lengths) show no single culprit
here.

**What to do.** Balance the data; mend what that rank alone does.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.compute import LONGEST_BACKWARD
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, percent, text_of
from hotlap.diagnose.shares import run_share
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.summary import ProcessSummary

CODE = "HL501"
NAME = "straggler"
_OWN = ("data_wait", "transfer", "forward", "logging", "other")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Compare the ranks' own work."""
    trainers = facts.run.trainers
    if len(trainers) < 2:
        return Clear("one process trains")
    own = {one.rank: _own_ns(one) for one in trainers}
    known = {rank: ns for rank, ns in own.items() if ns is not None}
    if len(known) < 2:
        return Unknown("the ranks' steps were not measured")
    slow = max(known, key=lambda rank: known[rank])
    others = [ns for rank, ns in known.items() if rank != slow]
    typical = sum(others) / len(others)
    mean = next(one.step.mean_ns for one in trainers if one.rank == slow)
    if not mean:
        return Unknown("the ranks' steps were not measured")
    phase = _largest_excess(trainers, slow)
    share = (known[slow] - typical) / mean * (run_share(facts, "steps") or 1.0)
    if phase == "forward":
        share *= 1.0 + _backward_to_forward(trainers, slow)
    if not worth(facts, share):
        return Clear("the ranks work about equally long")
    region = select(costs_of(facts), lambda one: one.phase == phase)
    where = f": {text_of(facts, region.top)} at {at(region.entry)}" if region else ""
    # Divided equally, the work takes the mean of all; what one rank alone does too much goes whole.
    equal = share * (len(known) - 1) / len(known)
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase=phase,
            share=Bounds(0.9 * equal, min(0.95, 1.1 * share)),
            first=region.entry if region else None,
            remedy=Remedy("code", (), "how data or work is divided"),
            say=(
                f"Rank {slow} is a straggler: it works {percent(share)} of a step longer than the "
                f"others, in {phase}{where}, and the other ranks wait for it in their backward "
                "pass "
                f"or collectives. Balance the work, or mend what this slow rank alone does."
            ),
            evidence=tuple(
                Evidence(f"rank {rank}, own work", round(ns / 1e6, 3), "ms per step")
                for rank, ns in known.items()
            ),
        ),
    )


def _own_ns(trainer: ProcessSummary) -> float | None:
    parts = [trainer.step.phases.get(name) for name in _OWN]
    known = [part.ns for part in parts if part is not None and part.ns is not None]
    return float(sum(known)) if known else None


def _backward_to_forward(trainers: tuple[ProcessSummary, ...], slow: int | None) -> float:
    """Return how long the slow rank's backward pass is, in its forward passes.

    What makes a forward pass longer makes the backward pass longer too, which cannot be read off
    the other ranks: theirs contains the wait for this one.
    """
    culprit = next(one for one in trainers if one.rank == slow)
    forward, backward = (culprit.step.phases.get(name) for name in ("forward", "backward"))
    if forward is None or backward is None or not forward.ns or backward.ns is None:
        return 0.0
    return min(LONGEST_BACKWARD, backward.ns / forward.ns)


def _largest_excess(trainers: tuple[ProcessSummary, ...], slow: int | None) -> str:
    def ns(one: ProcessSummary, name: str) -> float:
        part = one.step.phases.get(name)
        return float(part.ns) if part is not None and part.ns is not None else 0.0

    culprit = next(one for one in trainers if one.rank == slow)
    rest = [one for one in trainers if one.rank != slow]
    return max(
        _OWN, key=lambda name: ns(culprit, name) - sum(ns(one, name) for one in rest) / len(rest)
    )
