"""# HL404 busy-thread: another Python thread takes the interpreter from the training

**What.** Python runs one thread at a time (the global interpreter lock). A thread that works beside
the training (a monitor that polls, a reader that parses, a server) makes every call of the training
wait for its turn, up to 5 ms each.

**How it is measured.** CPU time and stacks of the other threads, beside the time in which the
training thread was on no core inside of the model and the loop.

**When it is wrong.** Where other programs take the cores: the report names them. A thread inside of
a library that lets go of the interpreter (numpy, decoders) costs a core alone; where cores are free
the training does not wait, and nothing is said.

**What to do.** Let it sleep between two looks, or do its work in a process of its own.
"""

from __future__ import annotations

import re

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.diagnose.switches import first_setting
from hotlap.diagnose.work import kind_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place
from hotlap.values.trial import ThreadEntry

CODE = "HL404"
NAME = "busy-thread"
_BUSY = 0.2
"""Of a core. A thread that holds the interpreter is stopped after 5 ms where others want it, so one
that always works gets at least half."""
_PHASES = ("forward", "backward", "optimizer", "other", "logging")
_WAITING = ("sleep", "locks", "network", "fsync", "subprocess", "reading files")
_QUEUES = re.compile(r"^(threading|queue|multiprocessing|selectors|socket|concurrent)\.")
_LETS_GO = re.compile(r"^(numpy|torch|PIL|cv2|scipy|zlib|lzma|bz2)\b")
"""Libraries that let go of the interpreter where they work: such a thread takes a core alone."""
_KNOWN = {
    "peak_monitor_func": ("skip_memory_metrics", "leave skip_memory_metrics at True"),
}
"""Threads of public libraries, by their function: the setting that starts them, and what to do."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge Python threads beside the one that trains."""
    busy = [one for one in facts.threads if one.wall_ns and one.cpu_ns >= _BUSY * one.wall_ns]
    if not busy:
        return Clear("no other Python thread of the process works for long")
    region = select(costs_of(facts), _waits)
    thread = max(busy, key=lambda one: one.cpu_ns)
    states = ("runqueue",) if _LETS_GO.match(thread.leaf) else ("blocked", "runqueue")
    off = [region.state_share(name) for name in states] if region else []
    known = [share for share in off if share is not None]
    waits = region.share * sum(known) if region else 0.0
    if region is None or not known or not worth(facts, waits):
        return Clear("other threads work, but the training hardly waits for them")
    setting, advice = _remedy(thread)
    return finding(
        facts,
        Rule(CODE, NAME),
        None,
        Claim(
            phase=region.top.phase,
            share=Bounds(0.5 * waits, min(0.97, 1.1 * waits)),
            first=_place(facts, thread, setting) or region.line,
            reason=True,
            remedy=Remedy("code", (), "nothing of the training"),
            say=(
                f"A Python thread beside the training ({thread.name}, in {thread.leaf}) is on a "
                f"core for {percent(thread.cpu_ns / thread.wall_ns)} of the time. Python runs one "
                "thread at a time (the global interpreter lock, GIL), so that the training waits "
                f"for its turn, or for the core: {percent(waits)} of the time in the middle of "
                f"its own lines. To mend it, {advice}."
            ),
            evidence=(
                Evidence("the thread on a core", round(thread.cpu_ns / thread.wall_ns, 3), "share"),
                Evidence("waits in model and loop", round(waits, 3), "share of the run"),
            ),
        ),
    )


def _waits(cost: Cost) -> bool:
    """Tell whether a line would be at work all the time if nobody were in its way."""
    kind = kind_of(cost)
    waits = kind is not None and kind.name in _WAITING
    return cost.role == "trainer" and cost.phase in _PHASES and not waits and not _in_queue(cost)


def _in_queue(cost: Cost) -> bool:
    waiting = sum(ns for leaf, ns in cost.leaves if _QUEUES.match(leaf))
    return waiting > 0.2 * sum(ns for _, ns in cost.leaves)


def _remedy(thread: ThreadEntry) -> tuple[str | None, str]:
    for function, (setting, advice) in _KNOWN.items():
        if function in thread.leaf or function in thread.name:
            return setting, advice
    return None, "let it sleep between two looks, or do its work in a process of its own"


def _place(facts: Facts, thread: ThreadEntry, setting: str | None) -> Place | None:
    return (first_setting(facts, (setting,)) if setting else None) or thread.place
