"""# HL701 checkpoints: the model is saved too often for what it costs

**What.** Saving stops the training; on a small model or at a short interval the saves dominate.

**How it is measured.** Wall time inside saves, exclusive of the steps, and the number of saves.
Where only some steps save, and as many take clearly longer than the others, what they take longer
belongs to it too: older files that are deleted, a state that is gathered, caches that are cold.

**When it is wrong.** Where a crash is likely and work is dear, an interval is a choice: the
finding says its price.

**What to do.** Save every n minutes rather than every n steps, only what is needed, in the
background.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, base_of, costs_of
from hotlap.diagnose.misplaced import saves_beside
from hotlap.diagnose.regions import Region, select
from hotlap.diagnose.say import at, percent, text_of
from hotlap.diagnose.shares import run_share, steps_of, trainer_of
from hotlap.diagnose.step_lines import training_function
from hotlap.diagnose.work import region_kind
from hotlap.stats.two_kinds import gap
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL701"
NAME = "checkpoints"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the time spent saving."""
    share = run_share(facts, "checkpoint")
    if share is None:
        return Unknown("run phases were not measured")
    region = _saving(costs_of(facts))
    if region is not None:
        share = max(share, region.share)
    if not worth(facts, share):
        return Clear("checkpoints take little time")
    trainer = trainer_of(facts)
    saves = [one for one in trainer.touches if one.family == "checkpoint"] if trainer else []
    count = sum(one.count for one in saves)
    place = next((one.place for one in saves if one.place is not None), None)
    steps = steps_of(facts)
    longer_ns = _longer(facts, count, steps)
    share += longer_ns * count / _base_ns(facts)
    each = f" ({count} times in {steps} steps)" if count and steps else ""
    named = place or (region.line if region else None)
    where = f" at {at(named)}" if named else ""
    quoted = f": {text_of(facts, region.top)}" if region else ""
    kind = region_kind(region.costs) if region else None
    binary = "in a binary format, " if kind is not None and kind.name == "parsing" else ""
    return finding(
        facts,
        Rule(CODE, NAME, scope="run"),
        region,
        Claim(
            phase="checkpoint",
            share=predict.recoverable(share, least=0.85),
            first=named,
            remedy=Remedy("code", (), "how much work a crash can cost"),
            say=(
                f"{percent(share)} of the time goes into saving checkpoints{where}{each}{quoted}. "
                f"Save {binary}less often (every n minutes), or in the background."
            ),
            evidence=(
                Evidence("saves", count or None, "in the trial"),
                *_evidence(longer_ns),
            ),
            interrupted=min(1.0, count / steps) if steps else 0.0,
        ),
    )


def _longer(facts: Facts, count: int, steps: int) -> float:
    """Return by how many nanoseconds a step with a save is longer than others, the save left out.

    0 where that cannot be told.
    """
    return (gap(facts.step_series, count / steps) or 0.0) if count and steps else 0.0


def _base_ns(facts: Facts) -> int:
    base = base_of(facts)
    return base.ns if base is not None and base.ns else 1


def _evidence(longer_ns: float) -> tuple[Evidence, ...]:
    if not longer_ns:
        return ()
    return (Evidence("steps with a save are longer by", round(longer_ns / 1e6, 2), "ms"),)


def _saving(costs: tuple[Cost, ...]) -> Region | None:
    """Return the lines inside of saves, with what the function that saves does beside them.

    A function of the user's that writes a checkpoint also renames, hashes or copies it.
    """
    loop = training_function(costs)
    saves = {(one.place.file, one.place.function) for one in costs if one.phase == "checkpoint"} - {
        loop
    }

    def belongs(one: Cost) -> bool:
        if one.phase == "checkpoint" or saves_beside(one):
            return True
        beside = one.phase in ("other", "logging") and one.role == "trainer"
        return beside and (one.place.file, one.place.function) in saves

    return select(costs, belongs)
