"""# HL102 input-blocked: preparing samples waits for storage, the network, or a lock

**What.** The training waits for data, and the code that prepares it does not compute: it is
blocked on a file, on a remote service, on a lock, or in a sleep.

**How it is measured.** Sampled stacks of the preparing thread with the kernel's split: wall time
minus processor time minus waiting for a core. Bytes really read from storage stand beside it, and
where it could be tried, how long the same samples wait with their files in memory and without.

**When it is wrong.** The first pass over data that fits into memory is slow once and fast after.

**What to do.** Blocked time overlaps: more workers (even more than cores) hide it, a cache removes
it, packing small files into few large ones makes the waits fewer.
"""

from __future__ import annotations

from typing import Final

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.input import NO_WAIT, Input, input_of, reads_from_storage, relief
from hotlap.diagnose.regions import Region, region_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.work import region_kind
from hotlap.values.facts import Facts, Measured
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL102"
NAME = "input-blocked"
_WAITS: Final = {
    True: "waiting for storage: the same samples hardly wait once their files lie in memory",
    False: "waiting for the network, a lock, or a sleep, but not for storage: with their files in "
    "memory the samples wait as long",
    None: "waiting (storage, a lock, or a sleep)",
}
"""By whether storage is what it waits for."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge blocked time in preparing samples."""
    data = input_of(facts)
    if data is None:
        return Unknown(NO_WAIT)
    if not worth(facts, data.wait):
        return Clear("the training hardly waits for data")
    if data.hidden is not None:
        return Clear(data.hidden)
    if data.state != "blocked":
        return Clear("preparing samples is mostly computing, not blocked")
    if data.region is None:
        return _without_lines(facts, data)
    region = region_of(
        [one for one in data.region.costs if one.state == "blocked"], costs_of(facts)
    )
    if region is None or not worth(facts, region.share):
        return Clear("no single place of preparing samples is blocked for long")
    kind = region_kind(region.costs)
    what = kind.noun if kind else _WAITS[reads_from_storage(facts)]
    advice = kind.advice if kind else "cache the data, or let more workers wait at the same time"
    retries = _retries(facts, region)
    if retries:
        what = "sleeping before something that has failed is tried again (retry with back-off)"
        advice = "find out what fails at each sample, and mend or skip it"
    disk = data.loader.disk_bytes if data.loader else None
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="data_wait",
            share=relief(facts, data, region.share, least=0.9),
            reason=retries,
            remedy=Remedy("code", ("loader_workers", "data_cache"), "nothing: same samples"),
            say=(
                f"The training waits for data for {percent(data.wait)} of its time, and that wait "
                "is "
                f"blocked, not computing: {what}, {texts_of(facts, region.costs)} at "
                f"{at(region.line)}, "
                f"with num_workers={data.workers}. To mend it, {advice}; blocked time also "
                "overlaps "
                f"when more loader workers wait at once."
            ),
            evidence=(
                Evidence("waiting for data", round(data.wait, 3), "share of the run"),
                Evidence("read from storage", disk, "bytes"),
                *_cold_and_warm(facts),
            ),
        ),
    )


def _cold_and_warm(facts: Facts) -> tuple[Evidence, ...]:
    if not isinstance(facts.storage, Measured):
        return ()
    seen = facts.storage.value
    return tuple(
        Evidence(f"blocked per sample, {name}", round(ns / max(1, seen.samples) / 1e6, 3), "ms")
        for name, ns in (
            ("files let go of", seen.cold_blocked_ns),
            ("files in memory", seen.warm_blocked_ns),
        )
    )


def _retries(facts: Facts, region: Region) -> bool:
    """Tell whether the line sleeps in an ``except`` clause."""
    return any(
        one.name == "sleep_after_error" and one.place == region.line for one in facts.settings
    )


def _without_lines(facts: Facts, data: Input) -> Finding | Unknown:
    """Say what one run without a profile can say: by the split of whole batches."""
    if data.loader is None:
        return Unknown("no stack of the code that prepares samples was seen")
    blocked = data.split("blocked") or 0.0
    return finding(
        facts,
        Rule(CODE, NAME),
        None,
        Claim(
            phase="data_wait",
            share=predict.recoverable(data.wait, least=0.5),
            first=data.loader.place,
            remedy=Remedy("code", ("loader_workers", "data_cache"), "nothing: same samples"),
            say=(
                f"The training waits for data for {percent(data.wait)} of its time, while its "
                f"loader is blocked on storage, a lock or a sleep for {percent(blocked)} of a "
                f"batch's time ({data.workers} workers). More workers overlap such waits, a cache "
                f"removes them."
            ),
        ),
    )
