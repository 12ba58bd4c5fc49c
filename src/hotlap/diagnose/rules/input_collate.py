"""# HL106 input-collate: putting the batch together costs more than making the samples

**What.** A large part of the wait for data is spent in the collate function, which turns a list of
samples into one batch: element-wise conversion, padding or tokenising in Python.

**How it is measured.** Sampled stacks inside the collate function of the preparing thread.

**When it is wrong.** With very large batches of plain tensors the copy itself is the cost; then
only smaller samples help.

**What to do.** Convert whole arrays rather than elements, pad into one allocated tensor, tokenise
ahead of the training, or let the data set return whole batches (`__getitems__`).
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.input import NO_WAIT, input_of, relief
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.work import region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Finding, Remedy, Unknown

CODE = "HL106"
NAME = "input-collate"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the collate function."""
    data = input_of(facts)
    if data is None:
        return Unknown(NO_WAIT)
    if not worth(facts, data.wait):
        return Clear("the training hardly waits for data")
    if data.hidden is not None:
        return Clear(data.hidden)
    region = data.collate
    if region is None or not worth(facts, region.share):
        return Clear("putting batches together takes little time")
    kind = region_kind(region.costs)
    what = f", {kind.noun}" if kind else ", working element by element in Python"
    advice = kind.advice if kind else "build the batch from whole arrays"
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="data_wait",
            share=relief(facts, data, region.share),
            remedy=Remedy("code", ("batched_fetch",), "nothing, if the batches stay the same"),
            say=(
                f"{percent(region.share)} of the time goes into collate, where samples become a "
                "batch"
                f"{what}: {texts_of(facts, region.costs)} at {at(region.line)}. To mend it, "
                f"{advice}, "
                "or "
                f"do the work in the data set, ahead of the training."
            ),
        ),
    )
