"""# HL401 logging: printing and writing logs takes the time of the steps

**What.** A print, a progress bar, a flushed log line or a tracker's call in each step, each of
which waits for a terminal, a pipe, a file or a disk.

**How it is measured.** The exclusive `logging` phase, and sampled stacks of lines that print,
write, flush or sync files between the steps.

**When it is wrong.** Writing to a file that is buffered costs next to nothing, and the rule is
silent.

**What to do.** Log every n steps, without flushing; let trackers work in the background.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.shares import step_share
from hotlap.diagnose.work import kind_of, region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL401"
NAME = "logging"
_METRICS = ("logged metrics",)
_KINDS = ("printing", "fsync", "plotting", *_METRICS)
_BESIDE = ("other", "optimizer", "forward")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge output written between the steps."""
    costs = costs_of(facts)
    share = step_share(facts, "logging")
    if not costs and share is None:
        return Unknown("no step was seen")
    region = select(costs, _logs)
    if region is None or not worth(facts, region.share):
        return Clear("printing and logging take little time")
    kind = region_kind(region.costs)
    what = kind.noun if kind else "printing and writing logs"
    advice = kind.advice if kind else "log every n steps"
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="logging",
            share=predict.recoverable(region.share, least=0.8),
            first=region.line,
            remedy=Remedy("code", (), "how often the log is written"),
            say=(
                f"{percent(region.share)} of the time goes into logging, {what}: "
                f"{texts_of(facts, region.costs)} at {at(region.line)}. To mend it, {advice}, "
                "instead "
                "of "
                f"at every step."
            ),
            evidence=(Evidence("logging phase", share, "share of the run"),),
        ),
    )


def _logs(cost: Cost) -> bool:
    if cost.role != "trainer":
        return False
    if cost.phase == "logging":
        return True
    if cost.phase not in _BESIDE:
        return False
    kind = kind_of(cost)
    # A framework that trains inside the optimizer's step (a closure) logs there, too.
    return kind is not None and kind.name in (_KINDS if cost.phase == "other" else _METRICS)
