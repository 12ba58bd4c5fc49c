"""# gc_control: Python's cycle collector looks at less, or not at all

**What.** `freeze` spares the collector all objects that live when the first step has ended: until
then a script makes what stays. `disable` also stops it.

**Where it helps.** Where the collector takes part of the time, walking over many live objects.

**What else it changes.** Objects in cycles that were frozen are never freed; with `disable`, none
that come later either. Numbers are the same.
"""

from __future__ import annotations

import gc
from typing import Any, Final

from hotlap.knobs.offers import judged, named_by, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import base_of

NAME: Final = "gc_control"
PHASE: Final = "other"
NUMERICS: Final = ("identical",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it where the collector's time was measured and is worth it."""
    spent, base = case.facts.counts.get("gc_ns"), base_of(case.facts)
    if (spent is None or base is None) and named_by(case, NAME) is None:
        return No("the collector was not watched")
    share = None if spent is None or base is None else spent / base.ns
    because = "Python's collector takes part of the time"
    return judged(case, NAME, share, Offer(("freeze", "disable"), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Stop the collector (``disable``), or spare it what lives (``freeze``), after one step."""

    def when_stepped() -> None:
        gc.collect()
        gc.freeze()
        target.undo_with(gc.unfreeze)
        if value == "disable":
            if gc.isenabled():
                target.undo_with(gc.enable)
            gc.disable()
            target.acted("disabled after the first step")
        else:
            target.acted(f"{gc.get_freeze_count()} objects are spared")

    target.after_first_step(when_stepped)


def snippet(value: Any) -> str:
    """Return the lines to paste after the first step."""
    lines = ["import gc", "gc.collect()", "gc.freeze()"]
    return "\n".join([*lines, "gc.disable()"] if value == "disable" else lines)
