"""# HL113 input-per-sample-overhead: samples are so small that calling for each one is the cost

**What.** The data lies in memory, a sample is a row; the loader calls Python once per row and puts
the rows together again.

**How it is measured.** Sampled stacks: the time lies in torch's own fetching and stacking and in
indexing, not in any work of the user's.

**When it is wrong.** Where indexing hides real work (memory maps on a slow disk).

**What to do.** Fetch whole batches: a `__getitems__` method, a batch sampler with
`batch_size=None`, or plain slices of a permuted tensor.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, state_of, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.input import input_of
from hotlap.diagnose.regions import Region, select
from hotlap.diagnose.say import percent, text_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL113"
NAME = "input-per-sample-overhead"
_LOADING = ("torch.utils.data.",)
_QUICK_NS = 150_000


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge loaders of many small samples."""
    data = input_of(facts)
    if data is None or data.loader is None:
        return Clear("no DataLoader feeds the training")
    if not worth(facts, data.wait):
        return Clear("the training hardly waits for data")
    clock = facts.sample_ns
    mean = clock.get("mean") if clock else None
    if mean is None:
        return Unknown("single samples were not clocked")
    if mean > _QUICK_NS:
        return Clear("a sample takes long enough to be work of its own")
    region = select(costs_of(facts), lambda one: one.phase == "data_wait")
    if region is None or state_of(region) == "blocked":
        return Clear("the wait is blocked, not computing")
    if _share_of_fetching(region) < 0.5:
        return Clear("most of the wait is other work than fetching and collating samples")
    batch = data.loader.batch_size
    if batch is None or batch < 8:
        return Clear("batches are too small for this to matter")
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="data_wait",
            share=predict.recoverable(data.wait, least=0.6, most=0.95),
            remedy=Remedy("knob", ("batched_fetch",), "nothing: same samples in the same order"),
            say=(
                f"Samples are tiny ({mean / 1000:.0f} us each) and are indexed one by one, {batch} "
                f"for each batch, then collated: {text_of(facts, region.top)}. That per-sample "
                f"overhead is {percent(data.wait)} of the time; index whole batches at once "
                f"(__getitems__, or slices of a permuted tensor) instead of single rows."
            ),
            evidence=(Evidence("a sample", round(mean / 1000, 1), "us"),),
        ),
    )


def _share_of_fetching(region: Region) -> float:
    """Return the share of the wait in torch's own fetching and collating, and in indexing."""
    inside = sum(
        one.ns
        for one in region.costs
        if one.place.function.rsplit(".", 1)[-1] == "__getitem__"
        or any(leaf.startswith(_LOADING) for leaf, _ in one.leaves[:2])
    )
    return inside / sum(one.ns for one in region.costs)
