"""# HL314 padding: batches are padded far beyond their longest row

**What.** Sequences are padded to a fixed width; the model computes on padding that no row of the
batch needs.

**How it is measured.** In batches as they were delivered: the width, the longest row and the mean
row, where all after a row's end is one and the same value.

**When it is wrong.** Where a fixed shape is wanted (a compiled graph); the price is then this.

**What to do.** Pad to the longest row of each batch; group rows of like length (that changes which
samples come together).
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.input import in_collate
from hotlap.diagnose.regions import Region, select
from hotlap.diagnose.say import line_of, percent
from hotlap.diagnose.shares import step_share
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL314"
NAME = "padding"
_FILLING = ("pad", "zeros", "full(", "max_len", "ljust")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the width of padded batches."""
    width, longest = facts.defaults.get("padded_width"), facts.defaults.get("padded_longest")
    if not width or longest is None:
        return Unknown("no batch of padded rows was seen")
    spare = 1.0 - longest / width
    model = (step_share(facts, "forward") or 0.0) + (step_share(facts, "backward") or 0.0)
    if spare < 0.2 or not worth(facts, spare * model):
        return Clear("batches are hardly wider than their longest row")
    mean = facts.defaults.get("padded_mean") or longest
    region = _filling(facts)
    steps = select(costs_of(facts), lambda one: one.phase in ("forward", "backward"))
    return finding(
        facts,
        Rule(CODE, NAME),
        steps,
        Claim(
            phase="forward",
            # Attention between positions is spared twice, in its rows and in its columns.
            share=Bounds(0.8 * spare * model, min(0.97, 1.0 - (1.0 - spare) ** 2) * model),
            first=region.top.place if region else None,
            remedy=Remedy("code", (), "nothing, if padding is masked"),
            say=(
                f"Every batch is padded to {width:.0f} tokens, but its longest row has "
                f"{longest:.0f} (mean {mean:.0f}): {percent(spare)} of the model's work is on "
                f"padding. Pad each batch to its own longest row (dynamic padding)."
            ),
            evidence=(
                Evidence("width", round(width), "tokens"),
                Evidence("longest row", round(longest, 1), "tokens"),
                Evidence("mean row", round(mean, 1), "tokens"),
            ),
        ),
    )


def _filling(facts: Facts) -> Region | None:
    """Return the lines that make the padded batch: where samples are put together, if that is seen.

    A line may be too quick to be seen itself; then those beside it stand for it.
    """
    costs = [one for one in costs_of(facts) if one.phase == "data_wait"]
    together = [one for one in costs if in_collate(one)]
    return (
        select(together, lambda one: _fills(facts, one))
        or select(together, lambda _: True)
        or select(costs, lambda one: _fills(facts, one))
    )


def _fills(facts: Facts, cost: Cost) -> bool:
    line = line_of(facts, cost.place)
    text = f"{cost.expression or ''} {line.text if line else ''}"
    return any(word in text for word in _FILLING)
