"""# HL503 communication: ranks wait for each other's data

**What.** Collectives (all-reduce, broadcast, barrier) take time that computing does not hide.

**How it is measured.** The exclusive phase `communication`, and sampled stacks of the lines that
call collectives; inside DDP they run in the backward pass.

**When it is wrong.** A slow rank makes the others wait: then the straggler rule outranks this one.

**What to do.** `no_sync()` while accumulating, fewer and larger collectives, scalars reduced every
n steps.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.misplaced import sends_buffers
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, percent, text_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL503"
NAME = "communication"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge collectives that the script calls itself."""
    if len(facts.run.trainers) < 2:
        return Clear("one process trains")
    region = select(costs_of(facts), _communicates)
    if region is None or not worth(facts, region.share):
        return Clear("collectives outside of the backward pass take little time")
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="communication",
            share=predict.recoverable(region.share, least=0.8),
            remedy=Remedy("code", (), "how often ranks agree on the value"),
            say=(
                f"{percent(region.share)} of the time goes into collectives between the ranks "
                f"(all_reduce, barrier: communication): {text_of(facts, region.top)} at "
                f"{at(region.line)}. Do it every n steps, or together with other values in one "
                "call."
            ),
            evidence=(Evidence("ranks", len(facts.run.trainers), "processes"),),
        ),
    )


def _communicates(cost: Cost) -> bool:
    if cost.role != "trainer":
        return False
    if cost.phase == "communication":
        return True
    if sends_buffers(cost):
        return True
    return any("torch.distributed" in leaf for leaf, _ in cost.leaves[:2]) and (
        cost.phase in ("other", "forward", "optimizer")
    )
