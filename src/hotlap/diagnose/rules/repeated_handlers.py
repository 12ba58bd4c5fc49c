"""# HL405 repeated-handlers: each line of the log is written several times

**What.** A logger has several handlers that write to the same file or stream, mostly because a
function that makes the logger adds one more each time it is called. Each line is formatted and
written as often as there are handlers, and where they become more, the run gets slower.

**How it is measured.** At the end of a trial the handlers of all loggers are counted by what they
write to, with those of the loggers above that get the same lines; sampled stacks say what logging
costs.

**When it is wrong.** Two handlers may be meant: of two levels, or in two forms. Then there are few.

**What to do.** Add the handler once, where the program begins, or only `if not logger.handlers`.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, percent, text_of
from hotlap.diagnose.work import kind_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL405"
NAME = "repeated-handlers"
_MANY = 3


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the handlers of the script's loggers."""
    if "log_handlers" not in facts.defaults:
        return Unknown("loggers were not looked at")
    name, count = facts.defaults["log_handlers"] or ("", 0)
    if count < _MANY:
        return Clear("no logger writes its lines several times")
    region = select(costs_of(facts), _logs)
    if region is None or not worth(facts, region.share):
        return Clear("logging takes little time")
    spare = region.share * (1.0 - 1.0 / count)
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase=region.top.phase,
            share=Bounds(0.6 * spare, spare),
            remedy=Remedy("code", (), "nothing but lines that stand in the log several times"),
            say=(
                f"{percent(region.share)} of the time goes into logging at {at(region.line)}: "
                f"{text_of(facts, region.top)}. The logger {name!r} has {count} handlers that "
                f"write to the same place in the end, so each line is written {count} times. To "
                "mend it, add the handler once (if not logger.handlers), not at each call."
            ),
            reason=True,
            evidence=(Evidence("handlers of one target", count, "in the end"),),
        ),
    )


def _logs(cost: Cost) -> bool:
    if cost.role != "trainer":
        return False
    kind = kind_of(cost)
    return cost.phase == "logging" or (kind is not None and kind.name == "printing")
