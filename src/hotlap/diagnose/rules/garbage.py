"""# HL403 garbage-collector: Python's collector takes the time of the steps

**What.** Many Python objects are alive (long lists, caches, graphs), and every full collection
walks over all of them; or the script collects by hand in each step.

**How it is measured.** The collector's own callbacks: collections and their time in a trial.

**When it is wrong.** Never; but objects in cycles need it: do not turn it off without
`gc.freeze()`.

**What to do.** Drop explicit `gc.collect()` calls, `gc.freeze()` after start-up, raise the
thresholds.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import base_of, costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.diagnose.switches import first_setting
from hotlap.diagnose.work import kind_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL403"
_BETWEEN = ("epoch_edge", "evaluation", "checkpoint", "start_up", "shut_down")
NAME = "garbage-collector"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the garbage collector's share."""
    spent, base = facts.counts.get("gc_ns"), base_of(facts)
    if spent is None or base is None:
        return Unknown("the collector was not watched")
    share = spent / base.ns
    if not worth(facts, share):
        return Clear("the garbage collector takes little time")
    region = select(costs_of(facts), _collects)
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="other",
            share=predict.recoverable(share, least=0.85),
            first=first_setting(facts, ("gc_collect", "collect"))
            or (region.line if region else None),
            remedy=Remedy("code", ("gc_control",), "when unreachable cycles are freed"),
            say=(
                f"Python's garbage collector takes {percent(share)} of the time"
                + (
                    ", called by hand (gc.collect)"
                    if region
                    else ", walking over many live objects"
                )
                + ". Drop explicit collections, and call gc.freeze() once after start-up."
            ),
            evidence=(Evidence("collections", facts.counts.get("collections"), "in the trial"),),
            # By hand it is called between epochs, as a rule, and interrupts no step.
            interrupted=0.0 if region is not None and region.top.phase in _BETWEEN else None,
        ),
    )


def _collects(cost: object) -> bool:
    kind = kind_of(cost)  # type: ignore[arg-type]  # select passes costs only
    return kind is not None and kind.name == "collector"
