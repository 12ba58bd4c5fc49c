"""# HL112 input-worker-threads: each loader worker runs a pool of threads of its own

**What.** Workers that call multi-threaded libraries (torch, BLAS, OpenCV) start one pool each;
threads times workers exceed the cores and wait for each other.

**How it is measured.** A trial in which every worker is held to one torch thread is compared with
the script as it stands. Without that trial, a call of `set_num_threads` in code that workers run
is named together with their waits for a core.

**When it is wrong.** With one worker on many cores its threads may pay.

**What to do.** One thread in each worker: `torch.set_num_threads(1)` in `worker_init_fn`.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.input import input_of
from hotlap.diagnose.shares import run_share
from hotlap.diagnose.switches import faster
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL112"
NAME = "input-worker-threads"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge threads inside workers."""
    data = input_of(facts)
    if data is None or not data.workers:
        return Clear("no loader has workers")
    if not worth(facts, data.wait):
        return Clear("the training hardly waits for data")
    calls = [
        one
        for one in facts.settings
        if one.name in ("set_num_threads", "threads") and one.value not in (1, "1")
    ]
    inside = next((one for one in calls if _in_worker_code(one.place.function)), None)
    tried = next((one for one in facts.what_ifs if one.change == "worker_threads"), None)
    if tried is None:
        if inside is None:
            return Clear("torch holds workers to one thread unless the script says otherwise")
        share, status = predict.recoverable(0.7 * data.wait, least=0.4), "suspected"
    elif not faster(facts, tried):
        return Clear("one thread in each worker was tried and made no difference")
    else:
        share, status = predict.by_what_if(tried, run_share(facts, "steps") or 1.0), "proven"
    place = inside.place if inside else (data.loader.place if data.loader else None)
    value = f" (set_num_threads({inside.value}))" if inside else ""
    return finding(
        facts,
        Rule(CODE, NAME),
        data.region,
        Claim(
            phase="data_wait",
            share=share,
            first=place,
            status=status,
            remedy=Remedy("knob", ("worker_threads",), "nothing, or the last bits of sums"),
            say=(
                f"Each of the {data.workers} loader workers runs several threads{value}, so "
                "threads "
                "times workers exceed the cores (oversubscription). Hold every worker to one "
                "thread "
                f"in worker_init_fn."
            ),
            evidence=(Evidence("waiting for a core", data.split("runqueue"), "share of a batch"),),
        ),
    )


def _in_worker_code(function: str) -> bool:
    name = function.rsplit(".", 1)[-1].lower()
    return name in ("__getitem__", "__iter__", "__getitems__") or "worker" in name
