"""# HL103 input-serial: the loader works in turns with the model instead of beside it

**What.** With `num_workers=0` the training thread prepares each batch itself, so loading and
computing never overlap.

**How it is measured.** The loader was drained alone with 0, 1, 2 … workers; where a trial with
more workers could be afforded, the steps themselves were compared.

**When it is wrong.** When the cores are already full: then more workers only share them. The
worker curve shows it, and this rule stays silent where the curve is flat and the wait computes.

**What to do.** Set `num_workers` to the knee of the curve. With augmentation the random draws
change (other seeds per worker), the order of samples does not.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, state_of, worth
from hotlap.diagnose.input import NO_WAIT, Input, best_point, input_of, point_at
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import run_share, training_rate
from hotlap.diagnose.switches import faster
from hotlap.values.facts import Facts, Measured
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL103"
NAME = "input-serial"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge a loader without workers."""
    data = input_of(facts)
    if data is None:
        return Unknown(NO_WAIT)
    if data.loader is None:
        return Clear("no DataLoader feeds the training")
    if data.workers:
        return Clear(f"the loader has {data.workers} workers")
    if not worth(facts, data.wait):
        return Clear("the training hardly waits for data")
    tried = [one for one in facts.what_ifs if one.change == "loader_workers" and one.value]
    if tried:
        best = max(tried, key=lambda one: one.ratio)
        if not faster(facts, best):
            return Clear(f"{best.value} workers were tried and made no difference")
        share = predict.by_what_if(best, run_share(facts, "steps") or 1.0)
        return _found(facts, data, int(best.value), share, "proven")
    share_modelled = _modelled(facts, data)
    if share_modelled is None:
        return Unknown("the loader was not measured with workers")
    workers, share = share_modelled
    if not worth(facts, share.high):
        return Clear("more workers would not make the loader faster on these cores")
    return _found(facts, data, workers, share, "suspected")


def _modelled(facts: Facts, data: Input) -> tuple[int, Bounds] | None:
    """Return how many workers, and what of the wait they would hide: step rate = min(G, L)."""
    best, rate = best_point(facts), training_rate(facts)
    alone = point_at(facts, 0)
    if best is None or rate is None or alone is None:
        return None
    if not isinstance(facts.compute_per_s, Measured):
        return None
    if best.workers == 0:
        return 0, Bounds(0.0, 0.0)
    blocked = data.region is not None and state_of(data.region) == "blocked"
    cores = facts.run.machine.cores_allowed or 1.0
    # Work that computes shares the cores with the model; work that is blocked does not.
    reached = min(best.per_s, facts.compute_per_s.value)
    if not blocked:
        together = cores / (1.0 / facts.compute_per_s.value + 1.0 / alone.per_s)
        reached = min(reached, together)
    most = 1.0 - rate / max(reached, rate)
    return best.workers, Bounds(0.6 * most, most)


def _found(facts: Facts, data: Input, workers: int, share: Bounds, status: str) -> Finding:
    loader = data.loader
    assert loader is not None
    file = f"{loader.place.file}:{loader.place.line}" if loader.place else "its DataLoader"
    return finding(
        facts,
        Rule(CODE, NAME),
        data.region,
        Claim(
            phase="data_wait",
            share=share,
            first=loader.place,
            status=status,
            remedy=Remedy(
                "knob",
                ("loader_workers",),
                "random draws of augmentation, not the order of samples",
            ),
            say=(
                f"The DataLoader made at {file} has num_workers=0, so loading takes turns with the "
                f"model and the training waits for data for {percent(data.wait)} of its time. Set "
                f"num_workers={workers}, so that batches are prepared beside the training."
            ),
            evidence=tuple(
                Evidence(
                    f"loader alone, {point.workers} workers", round(point.per_s, 1), "samples/s"
                )
                for point in facts.curve
            ),
        ),
    )
