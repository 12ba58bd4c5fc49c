"""# intra_op_threads: another number of threads for each operator

**What.** The number of threads that torch divides one operator among. One thread leaves cores idle
where operators are large; many threads wait for each other where they are small.

**Where it helps.** Trainings on the processor. Never more threads than cores that quota, affinity
and the ranks on the machine leave.

**What else it changes.** The last bits of sums. A count that the script itself sets is passed over;
one in the environment (`OMP_NUM_THREADS`, `MKL_NUM_THREADS`) is the user's word, and stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from hotlap.knobs.offers import best_trial, judged, named_by
from hotlap.knobs.target import Target
from hotlap.knobs.thread_counts import replace_set_num_threads
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import cores_of_rank, is_cpu, share_of

NAME: Final = "intra_op_threads"
PHASE: Final = "forward"
NUMERICS: Final = ("rounding",)
VARIABLES: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def applies(case: Case) -> Offer | No:
    """Offer the cores of a rank where fewer are used, and fewer threads where many are."""
    if not is_cpu(case.facts):
        return No("the model does not run on the processor")
    for name in VARIABLES:
        if case.environ.get(name):
            return No(f"{name}={case.environ[name]} is set in the environment, and stays")
    now = case.facts.defaults.get("threads")
    if not isinstance(now, int):
        return No("how many threads torch uses was not seen")
    cores = cores_of_rank(case.facts)
    values = [one for one in (cores, cores // 2, 1) if one >= 1 and one != now]
    values = list(dict.fromkeys(values))
    tried = best_trial(case.facts, NAME)
    if tried is not None and isinstance(tried.value, int) and tried.value <= cores:
        values = list(dict.fromkeys((tried.value, *values)))
    if not values:
        return No("torch uses one thread, on the one core that this training has")
    because = f"torch computes with {now} threads on {cores} cores"
    share = share_of(case.facts, "forward", "backward", "optimizer")
    if now == cores and named_by(case, NAME) is None and tried is None:
        share = None if share is None else 0.3 * share  # fewer threads spare waiting only
    return judged(case, NAME, share, Offer(tuple(values), NUMERICS[0], because))


def environment(value: Any, environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``OMP_NUM_THREADS``, unless the user has set a number of threads."""
    if any(environ.get(name) for name in VARIABLES):
        return {}
    return {"OMP_NUM_THREADS": str(int(value))}


def apply(target: Target, value: Any) -> None:
    """Set the number in the training process."""
    wanted = int(value)
    torch = sys.modules["torch"]
    own, before = torch.set_num_threads, torch.get_num_threads()
    replace_set_num_threads(target, wanted, for_workers=False)
    own(wanted)
    now = torch.get_num_threads()
    if now != before:
        target.undo_with(lambda: own(before))
        target.acted(f"{before} before, {now} now")
    elif now == wanted and os.environ.get("OMP_NUM_THREADS") == str(wanted):
        target.acted(f"{now} by OMP_NUM_THREADS since the start of the process")


def snippet(value: Any) -> str:
    """Return the line to paste."""
    return f"torch.set_num_threads({int(value)})  # or OMP_NUM_THREADS={int(value)}"
