"""# HL101 input-cpu-work: preparing samples costs more processor time than the model needs

**What.** The training waits for data, and while it waits the loader computes: it decodes, parses,
transforms. The line named is the one that takes most of that time.

**How it is measured.** The wait is the exclusive `data_wait` of the steps. What it consists of is
taken from sampled stacks of the thread that prepares batches (a worker, or at 0 workers the
training thread itself), with the kernel's own split into working, blocked and waiting for a core.

**When it is wrong.** Where the same work is done once ahead of the training by intent (a cache
that fills in the first epoch) the first minutes show it and the rest does not: look at the second
epoch.

**What to do.** Do the work once, ahead of the training; or make it cheaper; or spread it over
workers where cores are free. The bounds say what the run gains when 70 to 100 % of the line's cost
go away, and where images are decoded up to all that is done to a sample: a smaller image is also
quicker to resize. They end where the model alone would be the limit.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.input import NO_WAIT, Input, best_point, input_of, relief
from hotlap.diagnose.regions import Region, region_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.switches import faster
from hotlap.diagnose.work import Kind, region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL101"
NAME = "input-cpu-work"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the work of preparing samples."""
    data = input_of(facts)
    if data is None:
        return Unknown(NO_WAIT)
    if not worth(facts, data.wait):
        return Clear("the training hardly waits for data")
    if data.hidden is not None:
        return Clear(data.hidden)
    if data.state not in ("working", "runqueue"):
        return Clear("preparing samples is mostly blocked, not computing")
    if data.region is None:
        return _without_lines(facts, data)
    region = _concentrated(facts, data.region)
    if not worth(facts, region.share):
        return Clear("no single part of preparing samples stands out")
    return _found(facts, data, region)


def _without_lines(facts: Facts, data: Input) -> Finding | Unknown:
    """Say what one run without a profile can say: by the split of whole batches."""
    computing = data.split("cpu")
    if data.loader is None or computing is None:
        return Unknown("no stack of the code that prepares samples was seen")
    return finding(
        facts,
        Rule(CODE, NAME),
        None,
        Claim(
            phase="data_wait",
            share=predict.recoverable(data.wait, least=0.5),
            first=data.loader.place,
            remedy=Remedy("code", ("loader_workers",), "nothing, if the samples stay the same"),
            say=(
                f"The training waits for data for {percent(data.wait)} of its time, while its "
                f"loader computes ({data.workers} workers, on a core for {percent(computing)} of "
                f"a batch's time). Make preparing samples cheaper, or share it out."
            ),
        ),
    )


def _concentrated(facts: Facts, region: Region) -> Region:
    """Return the part of the region below its hot line, if that is most of it."""
    inside = [
        cost for cost in region.costs if cost.place == region.hot or region.hot in cost.callers
    ]
    return region_of(inside, costs_of(facts)) or region


def _recoverable(facts: Facts, data: Input, region: Region, kind: Kind | None) -> Bounds:
    """Return bounds of what goes away; with smaller images also what is done to large ones."""
    share = relief(facts, data, region.share, least=0.8)
    if kind is None or kind.name != "image decoding" or data.region is None:
        return share
    return Bounds(share.low, relief(facts, data, data.region.share).high)


def _found(facts: Facts, data: Input, region: Region) -> Finding:
    kind = region_kind(region.costs)
    what = kind.noun if kind else "computing in Python"
    advice = kind.advice if kind else "do it once ahead of the training, or make it cheaper"
    where = (
        f"in {data.workers} worker processes" if data.workers else "in the training process itself"
    )
    best = best_point(facts)
    more = ""
    knobs: tuple[str, ...] = ()
    tried = [one for one in facts.what_ifs if one.change == "loader_workers" and one.value]
    if tried and not any(faster(facts, one) for one in tried):
        more = f"; {tried[0].value} workers were tried, and the steps were no faster"
    elif best is not None and best.workers > data.workers:
        more = f"; {best.workers} workers would share the work (num_workers is {data.workers})"
        knobs = ("loader_workers",)
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="data_wait",
            share=_recoverable(facts, data, region, kind),
            remedy=Remedy("code", knobs, "nothing, if the samples stay the same"),
            say=(
                f"The training waits for data for {percent(data.wait)} of its time, and "
                f"{percent(region.share)} of it goes into {what}: {texts_of(facts, region.costs)} "
                "at "
                f"{at(region.line)}, done for each sample {where}. "
                f"To mend it, {advice}{more}."
            ),
            evidence=(
                Evidence("waiting for data", round(data.wait, 3), "share of the run"),
                Evidence("workers", data.workers, "processes"),
            ),
        ),
    )
