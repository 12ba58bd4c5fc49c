"""# HL301 anomaly-mode: autograd's anomaly detection is on

**What.** `torch.autograd.set_detect_anomaly(True)` checks every gradient and keeps a traceback for
each operator. It is a tool for debugging and slows every step.

**How it is measured.** The switch is read while the steps run; a trial with the switch off shows
what it costs.

**When it is wrong.** Never, but it may be wanted: then the finding says what it costs.

**What to do.** Turn it off, and on again when a NaN must be found.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding
from hotlap.diagnose.shares import floor_of, run_share, step_share
from hotlap.diagnose.switches import first_setting, truthy, what_if
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Finding, Remedy, Unknown

CODE = "HL301"
NAME = "anomaly-mode"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the anomaly switch."""
    place = first_setting(facts, ("detect_anomaly", "set_detect_anomaly"), truthy)
    on = facts.defaults.get("anomaly")
    if not on and place is None:
        return Clear("anomaly detection is off")
    if on is False:
        return Clear("anomaly detection was off while the steps ran")
    tried = what_if(facts, "anomaly_mode", False)
    if tried is None:
        compute = (step_share(facts, "forward") or 0.0) + (step_share(facts, "backward") or 0.0)
        share, status = Bounds(0.2 * compute, 0.7 * compute), "suspected"
    else:
        share = predict.by_what_if(tried, run_share(facts, "steps") or 1.0)
        status = "proven"
        if (share.high or 0.0) < floor_of(facts):
            return Clear("turning anomaly detection off was tried and made no difference")
    return finding(
        facts,
        Rule(CODE, NAME),
        None,
        Claim(
            phase="backward",
            share=share,
            first=place,
            status=status,
            remedy=Remedy("knob", ("anomaly_mode",), "a NaN is no longer traced to its operator"),
            say=(
                "Autograd's anomaly detection (a debugging switch, detect_anomaly) is on, so every "
                "operator keeps a traceback and every gradient is checked. Turn it off, and on "
                "again "
                "only to hunt a NaN."
            ),
        ),
    )
