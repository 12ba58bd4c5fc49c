"""# HL315 dense-tables: a large embedding table is updated as a whole at each step

**What.** A batch touches a few rows of the table, but the gradient is dense, so the optimizer
reads and writes every row (twice more for Adam's averages).

**How it is measured.** The table's part of all trainable parameters, and the exclusive shares of
the optimizer and of clearing and filling the gradient.

**When it is wrong.** Small tables, or batches that touch most rows.

**What to do.** `sparse=True` with `SparseAdam` or SGD for the tables, or a smaller table. Adam's
averages then decay only for rows that are touched.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import step_share
from hotlap.diagnose.switches import first_setting
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL315"
NAME = "dense-tables"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the optimizer's work on embedding tables."""
    graded = facts.defaults.get("trainable_elements")
    tables = facts.defaults.get("table_elements")
    optimizer = step_share(facts, "optimizer")
    if not graded or tables is None or optimizer is None:
        return Unknown("the model's parameters were not looked at")
    part = tables / graded
    if part < 0.5 or not worth(facts, part * optimizer) or optimizer < 0.2:
        return Clear("embedding tables do not make the optimizer slow")
    backward = step_share(facts, "backward") or 0.0
    region = select(costs_of(facts), lambda one: one.phase == "optimizer")
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="optimizer",
            share=Bounds(0.7 * part * optimizer, min(0.97, part * (optimizer + 0.6 * backward))),
            first=first_setting(facts, ("embedding",)),
            remedy=Remedy("code", (), "Adam's averages of rows that a batch does not touch"),
            say=(
                f"The embedding tables hold {percent(part)} of the parameters and get dense "
                f"gradients, so each optimizer step ({percent(optimizer)} of the time) updates "
                f"all rows though a batch touches few. Use sparse=True with a sparse optimizer."
            ),
            evidence=(Evidence("tables", round(part, 3), "share of parameters"),),
        ),
    )
