"""# HL116 small-cache: a function's cache is smaller than what goes through it

**What.** A function of the script's keeps its results (`functools.lru_cache`), but fewer than are
asked for before one is needed again. In random order over more keys than entries nearly every call
misses, and the work is done again each epoch.

**How it is measured.** Hits and misses that the cache itself counts, in the training process, and
the time of the function by sampled stacks.

**When it is wrong.** Where all results together would not fit into memory.

**What to do.** A larger `maxsize` (or None), or keep the results on disk.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import percent, texts_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL116"
NAME = "small-cache"
_MISSED = 0.5
_ROUNDS = 1.5
"""Misses in sizes of the cache from which on it was filled more than once."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge caches of functions that are full and missed."""
    caches = facts.defaults.get("function_caches")
    if not isinstance(caches, (list, tuple)) or not caches:
        return Clear("no function of the script has a bounded cache")
    costs = costs_of(facts)
    for file, line, name, hits, misses, most, entries in caches:
        if entries < most or misses < _ROUNDS * most or misses < _MISSED * (hits + misses):
            continue
        cached = Place(file, line, name)
        region = region_of([one for one in costs if _inside(one, cached)], costs)
        if region is None or not worth(facts, region.share):
            continue
        return finding(
            facts,
            Rule(CODE, NAME),
            region,
            Claim(
                phase=region.top.phase,
                share=predict.recoverable(region.share, least=0.6),
                first=region.line,
                reason=True,
                remedy=Remedy("code", (), "memory: every result is kept"),
                say=(
                    f"The cache of `{name}` ({file}:{line}, lru_cache) has {most} entries and was "
                    f"missed by {misses} of {hits + misses} calls: results are evicted before they "
                    f"are needed again, and {percent(region.share)} of the time goes into making "
                    f"them again: {texts_of(facts, region.costs)}. Make it larger (maxsize=None), "
                    "or keep the results on disk."
                ),
                evidence=(Evidence("misses", misses, f"of {hits + misses} calls"),),
            ),
        )
    return Clear("the caches of the script's functions are hit, or their work takes little time")


def _inside(cost: Cost, cached: Place) -> bool:
    return any(
        (at.file, at.function.rpartition(".")[2]) == (cached.file, cached.function)
        for at in cost.stack
    )
