"""# HL104 input-too-many-workers: more loader workers than the cores can feed

**What.** The loader has more workers than cores are allowed to this job, and is faster with fewer.

**How it is measured.** The loader was drained alone at several worker counts; the knee is the
fewest workers within 5 % of the best rate. Workers' own waits for a core stand beside it.

**When it is wrong.** When samples are blocked, not computing: then many workers are right, and the
curve still rises.

**What to do.** Set `num_workers` to the knee.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding
from hotlap.diagnose.input import best_point, input_of, point_at
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import floor_of, run_share
from hotlap.diagnose.switches import faster
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL104"
NAME = "input-too-many-workers"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the number of workers against the cores."""
    data = input_of(facts)
    cores = facts.run.machine.cores_allowed
    if data is None or data.loader is None:
        return Clear("no DataLoader feeds the training")
    if cores is None:
        return Unknown("the cores allowed to this job are not known")
    if data.workers <= cores:
        return Clear(f"{data.workers} workers on {cores:g} cores")
    tried = [
        one
        for one in facts.what_ifs
        if one.change == "loader_workers" and 0 < one.value < data.workers
    ]
    best, here = best_point(facts), point_at(facts, data.workers)
    if tried:
        chosen = max(tried, key=lambda one: one.ratio)
        if not faster(facts, chosen):
            return Clear("fewer workers were tried and made no difference")
        share = predict.by_what_if(chosen, run_share(facts, "steps") or 1.0)
        workers, status = int(chosen.value), "proven"
    elif best is not None and here is not None:
        if best.workers >= data.workers or here.high >= best.low:
            return Clear("the loader is not faster with fewer workers")
        gain = min(data.wait, 1.0 - here.per_s / best.per_s)
        share, workers, status = Bounds(0.5 * gain, gain), best.workers, "suspected"
    else:
        return Unknown("the loader was not measured with fewer workers")
    if (share.high or 0.0) < floor_of(facts):
        return Clear("the gain would be within the noise")
    waiting = data.split("runqueue")
    return finding(
        facts,
        Rule(CODE, NAME),
        None,
        Claim(
            phase="data_wait",
            share=share,
            first=data.loader.place,
            status=status,
            remedy=Remedy("knob", ("loader_workers",), "random draws of augmentation"),
            say=(
                f"The loader has num_workers={data.workers}, but this job is allowed {cores:g} "
                "cores: "
                f"too many workers wait for a core"
                + (f" ({percent(waiting)} of a batch's time)" if waiting else "")
                + f" and crowd out the training. Set num_workers={workers}."
            ),
            evidence=tuple(
                Evidence(
                    f"loader alone, {point.workers} workers", round(point.per_s, 1), "samples/s"
                )
                for point in facts.curve
            ),
        ),
    )
