"""# HL504 broadcast-buffers: DDP sends a module's buffers to all ranks before every forward pass

**What.** What a module registers as buffers (running statistics, but also tables and masks that
never change) is sent from rank 0 to the others at each step, whatever its size.

**How it is measured.** Sampled stacks inside DDP's broadcast of buffers.

**When it is wrong.** Where running statistics have to be those of rank 0 at each step, the sending
is wanted; a SyncBatchNorm keeps them equal without it.

**What to do.** `DistributedDataParallel(..., broadcast_buffers=False)`, or keep constant tables out
of the module's buffers (an attribute, or `_ddp_params_and_buffers_to_ignore`).
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.misplaced import sends_buffers
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, percent, text_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL504"
NAME = "broadcast-buffers"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the sending of buffers before forward passes."""
    ranks = len(facts.run.trainers)
    if ranks < 2:
        return Clear("one process trains")
    region = select(costs_of(facts), lambda one: one.role == "trainer" and sends_buffers(one))
    if region is None or not worth(facts, region.share):
        return Clear("sending buffers takes little time")
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="communication",
            share=predict.recoverable(region.share, least=0.9),
            reason=True,
            remedy=Remedy("code", (), "running statistics differ between ranks, if there are any"),
            say=(
                f"{percent(region.share)} of the time goes into sending the module's buffers from "
                f"rank 0 to the others before every forward pass ({text_of(facts, region.top)} at "
                f"{at(region.line)}): DistributedDataParallel broadcasts all buffers, constant "
                "tables and masks too. Set broadcast_buffers=False, or keep what never changes out "
                "of the buffers."
            ),
            evidence=(Evidence("ranks", ranks, "processes"),),
        ),
    )
