"""# worker_threads: one thread per operator in a loader's worker

**What.** torch gives each worker of a DataLoader one thread. A script that sets more in its
`worker_init_fn` or data set lets all workers' threads fight for the same cores.

**Where it helps.** Loaders with workers, in scripts that set a number of threads.

**What else it changes.** Nothing, or the last bits of sums in samples.
"""

from __future__ import annotations

from typing import Any, Final

from hotlap.knobs.offers import best_trial, judged, named_by, no_variables
from hotlap.knobs.target import Target
from hotlap.knobs.thread_counts import replace_set_num_threads
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of, training_loader

NAME: Final = "worker_threads"
PHASE: Final = "data_wait"
NUMERICS: Final = ("rounding",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer one thread where the script sets a number and its loader has workers."""
    loader = training_loader(case.facts)
    if loader is None or not loader.workers:
        return No("no loader with workers feeds the training")
    sets = any(one.name in ("set_num_threads", "threads") for one in case.facts.settings)
    known = named_by(case, NAME) or best_trial(case.facts, NAME)
    if not sets and known is None:
        return No("a worker has one thread unless the script says otherwise, and it does not")
    because = "the script sets a number of threads, and its loader has workers"
    share = share_of(case.facts, "data_wait")
    return judged(case, NAME, share, Offer((1,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Set how many threads an operator uses in a loader's worker."""
    replace_set_num_threads(target, int(value), for_workers=True)


def snippet(value: Any) -> str:
    """Return the line to paste into the ``worker_init_fn``."""
    return f"torch.set_num_threads({int(value)})  # in worker_init_fn"
