"""# HL326 attention-weights: attention returns its weights, and need not

**What.** `nn.MultiheadAttention` returns the attention weights unless it is told not to
(`need_weights=True` is its default). To return them it writes out the matrices of all heads and
averages them, where it could call the fused `scaled_dot_product_attention`.

**How it is measured.** Where one line holds the products and the softmax of an attention, a trial
in which no weights are made, compared with the script as it stands.

**When it is wrong.** Where the weights are used: for a picture of them, or in the loss. A script
that fails without them is not taken for one that can do without.

**What to do.** `need_weights=False` in the call.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.operators import written_out_attention
from hotlap.diagnose.regions import select
from hotlap.diagnose.shares import run_share
from hotlap.diagnose.switches import faster, what_if
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL326"
NAME = "attention-weights"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge attention that returns its weights."""
    lines, part = written_out_attention(facts)
    if not lines or not worth(facts, part):
        return Clear("no attention was seen that is written out matrix by matrix")
    tried = what_if(facts, "attention_weights", False)
    if tried is None:
        return Unknown("attention without its weights was not tried, or they are not asked for")
    share = predict.by_what_if(tried, run_share(facts, "steps") or 1.0)
    if not faster(facts, tried) or not worth(facts, share.high):
        return Clear("attention without its weights was tried and was not faster")
    keys = {(one.file, one.line) for one in lines}
    region = select(
        costs_of(facts),
        lambda one: one.phase == "forward" and (one.place.file, one.place.line) in keys,
    )
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="forward",
            share=share,
            first=region.line if region is not None else lines[0],
            status="proven",
            remedy=Remedy(
                "code", ("attention_weights",), "the last bits of sums; no weights are returned"
            ),
            say=(
                "nn.MultiheadAttention returns its attention weights here (need_weights=True is "
                "the default), so the matrices of all heads are written out and averaged at each "
                "call. If nothing uses them, call it with need_weights=False: then the fused "
                "scaled_dot_product_attention does the work."
            ),
            evidence=(Evidence("without weights", round(tried.ratio, 3), "times faster"),),
        ),
    )
