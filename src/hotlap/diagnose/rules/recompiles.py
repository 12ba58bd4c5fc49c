"""# HL307 recompiles: torch.compile compiles again and again

**What.** Shapes or Python numbers change from step to step, so guards fail and the graph is
compiled anew.

**How it is measured.** Wall time inside compilation, exclusive of the steps (`compile`), and how
it is spread over the run: the first compilation is normal, later ones are not.

**When it is wrong.** A short run pays the first compilation only: then it is named as a cost of
start.

**What to do.** `dynamic=True` or `mark_dynamic`, bucketed shapes, tensors in place of Python
numbers.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, growing, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import run_share
from hotlap.diagnose.switches import first_setting
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL307"
NAME = "recompiles"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge time spent compiling."""
    share = run_share(facts, "compile")
    if share is None:
        return Clear("nothing was compiled")
    if not worth(facts, share):
        return Clear("compiling takes little of the time")
    region = select(costs_of(facts), lambda one: one.phase == "compile")
    spread = _slices(facts)
    again = spread >= 3
    say = (
        f"{percent(share)} of the time goes into torch.compile, which recompiles as shapes or "
        f"Python numbers change. Compile with dynamic=True, bucket the shapes, or do not compile."
        if again
        else f"{percent(share)} of the time goes into the first compilation (torch.compile), more "
        f"than this short run can earn back. Leave it out of short runs, or compile fewer parts."
    )
    return finding(
        facts,
        Rule(CODE, NAME, scope="run"),
        region,
        Claim(
            phase="compile",
            # One of at least so many compilations stays; a first one only where it is left out.
            share=predict.recoverable(share, least=1.0 - 1.0 / spread if again else 0.6),
            first=first_setting(facts, ("compile",)) or (region.entry if region else None),
            remedy=Remedy("knob", ("compile",), "the last bits of sums")
            if again
            else Remedy("code", (), "nothing: the model runs as it was written"),
            say=say,
            evidence=(
                Evidence("compiling", round(share, 3), "share of the run"),
                Evidence("parts of the run in which it compiled", spread, "of 16"),
                Evidence("late against early", growing(region.costs) if region else None, "times"),
            ),
        ),
    )


def _slices(facts: Facts) -> int:
    """Return in how many of 16 equal parts of the run something was compiled."""
    rows = [one.over_time for one in costs_of(facts) if one.phase == "compile"]
    length = max((len(row) for row in rows), default=0)
    return sum(1 for i in range(length) if any(i < len(row) and row[i] for row in rows))
