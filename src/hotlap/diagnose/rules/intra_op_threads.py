"""# HL303 intra-op-threads: torch uses the wrong number of threads for these operators

**What.** One thread where many would pay, or many where each operator is so small that the threads
wait for each other.

**How it is measured.** Trials with other thread counts, compared with the script as it stands.

**When it is wrong.** Beside other jobs on the same cores the best count changes.

**What to do.** `torch.set_num_threads(n)` with the count found, or `OMP_NUM_THREADS`.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.shares import busy_words, is_cpu, run_share
from hotlap.diagnose.switches import faster, first_setting
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL303"
NAME = "intra-op-threads"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the number of intra-op threads."""
    if not is_cpu(facts):
        return Clear("the model runs on a device, not on the processor's threads")
    busy = busy_words(facts)
    if busy is not None:
        return Unknown(f"{busy}, so thread counts cannot be judged")
    tried = [one for one in facts.what_ifs if one.change == "intra_op_threads" and one.acted]
    if not tried:
        return Unknown("other thread counts were not tried")
    best = max(tried, key=lambda one: one.ratio)
    share = predict.by_what_if(best, run_share(facts, "steps") or 1.0)
    if not faster(facts, best) or not worth(facts, share.high):
        return Clear("other thread counts were tried and were not faster")
    now = facts.defaults.get("threads")
    return finding(
        facts,
        Rule(CODE, NAME),
        None,
        Claim(
            phase="forward",
            share=share,
            first=first_setting(facts, ("set_num_threads", "threads", "OMP_NUM_THREADS")),
            status="proven",
            remedy=Remedy("knob", ("intra_op_threads",), "the last bits of sums"),
            say=(
                f"torch computes with {now if now is not None else 'its default number of'} "
                "threads; "
                f"with {best.value} the steps are faster. Call torch.set_num_threads({best.value}) "
                "or "
                f"set OMP_NUM_THREADS={best.value}."
            ),
            evidence=tuple(
                Evidence(f"{one.value} threads", round(one.ratio, 3), "times faster")
                for one in tried
            ),
        ),
    )
