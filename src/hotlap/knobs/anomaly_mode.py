"""# anomaly_mode: autograd's anomaly detection is off

**What.** `torch.autograd.set_detect_anomaly(True)` keeps a traceback for each operator and checks
every gradient for NaN. With this knob it stays off, whatever the script switches.

**Where it helps.** Where the switch is on during the steps, as the diagnosis has seen.

**What else it changes.** A NaN no longer raises at the operator that made it. Numbers are the same.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from hotlap.knobs.offers import judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "anomaly_mode"
PHASE: Final = "backward"
NUMERICS: Final = ("identical",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it where the switch was on during the steps."""
    on = case.facts.defaults.get("anomaly")
    if on is False:
        return No("anomaly detection was off during the steps")
    if on is None:
        return No("whether anomaly detection is on was not seen")
    because = "anomaly detection is on during the steps"
    share = share_of(case.facts, "forward", "backward")
    return judged(case, NAME, share, Offer((False,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Set the mode; the script's own switching is passed over."""
    torch = sys.modules["torch"]
    own = torch.set_anomaly_enabled
    wanted = bool(value)

    @functools.wraps(own)
    def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> Any:
        if bool(mode) != wanted:
            target.acted(f"the script's switching it {'on' if mode else 'off'} was passed over")
        return own(wanted, check_nan)

    target.replace(torch, "set_anomaly_enabled", set_anomaly_enabled)
    if wanted and not torch.is_anomaly_enabled():
        own(True, True)
        target.undo_with(lambda: own(False))
        target.acted("switched on")


def snippet(value: Any) -> str:
    """Return the line to have in place of the script's own."""
    return f"torch.autograd.set_detect_anomaly({bool(value)})"
