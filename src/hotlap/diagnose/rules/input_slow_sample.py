"""# HL108 input-slow-sample: a few samples take many times longer than the rest

**What.** Most samples are quick and a few are very slow; the batch, and in order the whole queue,
waits for them.

**How it is measured.** Every sample's own time is clocked in a trial: median, 99th percentile,
maximum and mean.

**When it is wrong.** The first sample of each worker may open files or import modules.

**What to do.** Find what is special about them (size, length, a retry) and treat it ahead of the
training; more prefetch hides a rare one.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.input import NO_WAIT, input_of
from hotlap.diagnose.say import at, percent, text_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL108"
NAME = "input-slow-sample"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the spread of single samples."""
    data = input_of(facts)
    if data is None:
        return Unknown(NO_WAIT)
    if not worth(facts, data.wait) or data.region is None:
        return Clear("the training hardly waits for data")
    if data.hidden is not None:
        return Clear(data.hidden)
    if (data.split("runqueue") or 0.0) >= 0.25:
        return Clear("samples wait for a core, so single times tell little")
    clock = facts.sample_ns
    if not clock or not clock.get("p50") or not clock.get("mean"):
        return Unknown("single samples were not clocked")
    # The part of all samples' time that lies above what the median sample takes.
    excess = 1.0 - clock["p50"] / clock["mean"]
    if clock.get("max", 0) < 8 * clock["p50"] or excess < 0.4:
        return Clear("no sample stands out among the others")
    share = data.wait * excess
    if not worth(facts, share):
        return Clear("slow samples cost little")
    return finding(
        facts,
        Rule(CODE, NAME),
        data.region,
        Claim(
            phase="data_wait",
            share=predict.recoverable(share, least=0.8),
            remedy=Remedy("code", ("prefetch_depth",), "nothing, if the samples stay the same"),
            say=(
                f"A few slow samples (outliers: up to {clock['max'] / clock['p50']:.0f} times the "
                f"median) take {percent(excess)} of the time for preparing samples, and the queue "
                f"waits for them: {text_of(facts, data.region.top)} at {at(data.region.line)}. "
                "Look at "
                f"what is special about these samples, and treat it ahead of the training."
            ),
            evidence=tuple(
                Evidence(f"sample, {name}", round(clock[name] / 1e6, 3), "ms")
                for name in ("p50", "p99", "max", "mean")
                if clock.get(name) is not None
            ),
        ),
    )
