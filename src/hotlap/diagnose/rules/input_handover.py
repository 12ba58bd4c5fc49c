"""# HL107 input-hand-over: batches are large or many-pieced, and passing them on is the cost

**What.** Workers are ready, but the batch must be serialised, passed through a queue and rebuilt
in the training process; with large arrays or custom objects that costs more than making them.

**How it is measured.** Workers' time for serialising, and the training thread's own work while it
takes a batch.

**When it is wrong.** Small plain tensors travel by shared memory; then this is near zero.

**What to do.** Return plain tensors in the smallest type that will do, fewer and larger pieces,
and convert on the training side.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.input import input_of
from hotlap.diagnose.say import percent
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL107"
NAME = "input-hand-over"
_RECEIVING = ("multiprocessing", "_pickle", "pickle", "torch.storage", "torch._utils")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the way from the workers to the training process."""
    data = input_of(facts)
    if data is None or not data.workers:
        return Clear("no loader has workers")
    ipc = data.split("ipc")
    received = data.sampler
    taking = 0.0
    if received is not None:
        taking = sum(
            cost.share * (cost.working or 0.0)
            for cost in received.costs
            if any(name in leaf for leaf, _ in cost.leaves[:2] for name in _RECEIVING)
        )
    share = taking + (ipc or 0.0) * data.wait
    if not worth(facts, share):
        return Clear("passing batches on takes little time")
    place = data.loader.place if data.loader else None
    return finding(
        facts,
        Rule(CODE, NAME),
        received,
        Claim(
            phase="data_wait",
            share=predict.recoverable(share, least=0.5),
            first=place,
            remedy=Remedy("code", ("compact_hand_over",), "nothing, if values stay the same"),
            say=(
                f"{percent(share)} of the time goes into passing batches from the workers to the "
                "training process (pickle, queue, copy: large samples or many objects). Return "
                "plain "
                f"tensors of a smaller type instead of large arrays or custom objects."
            ),
            evidence=(
                Evidence("serialising in workers", ipc, "share of a batch"),
                Evidence("rebuilding in the trainer", round(taking, 3), "share of the run"),
            ),
        ),
    )
