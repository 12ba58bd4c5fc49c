"""# HL110 input-worker-restart: workers are started anew at every epoch or loader

**What.** Without `persistent_workers` the loader's processes end with the epoch and start again at
the next one; with short epochs, or a loader made inside the loop, the run waits for that.

**How it is measured.** The time between the last step of an epoch and the first batch of the next
(`epoch_edge`), and the number of times a loader with workers was begun.

**When it is wrong.** Long epochs: the edge is then a small share, and this rule is silent.

**What to do.** `persistent_workers=True`, and make the loader once, outside of the loop. With
persistent workers the random draws of later epochs change, the order of samples may.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.input import epoch_edge_share, input_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL110"
NAME = "input-worker-restart"
_STARTING = (
    "multiprocessing.popen",
    "multiprocessing.process",
    "multiprocessing.context",
    "multiprocessing.util",
    "_MultiProcessingDataLoaderIter.__init__",
    "_MultiProcessingDataLoaderIter._shutdown_workers",
    "_MultiProcessingDataLoaderIter.__del__",
)


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge what happens between epochs in a loader with workers."""
    data = input_of(facts)
    if data is None or data.loader is None or not data.workers:
        return Clear("no loader with workers feeds the training")
    region = select(costs_of(facts), _restarts)
    # A wait that preparing samples does not explain is one for workers that have just started.
    waited = data.wait if data.hidden is not None and _begins_often(facts) else 0.0
    share = max(region.share if region else 0.0, epoch_edge_share(facts) + waited)
    if not worth(facts, share):
        return Clear("the edges of the epochs take little time")
    tried = next((one for one in facts.what_ifs if one.change == "persistent_workers"), None)
    if tried is not None and tried.high <= 1.0:
        return Clear("persistent workers were tried and made no difference")
    place = data.loader.place
    return finding(
        facts,
        Rule(CODE, NAME, scope="epoch"),
        region,
        Claim(
            phase="epoch_edge",
            share=predict.recoverable(share, least=0.85),
            first=place,
            status="proven" if tried is not None and tried.low > 1.0 else "suspected",
            remedy=Remedy("knob", ("persistent_workers",), "random draws of later epochs"),
            say=(
                f"{percent(share)} of the time passes between epochs, while the {data.workers} "
                "loader "
                "workers are started anew (persistent_workers is off, or the DataLoader is "
                "created "
                f"again). Make the loader once and set persistent_workers=True."
            ),
            evidence=(Evidence("between epochs", round(share, 3), "share of the run"),),
        ),
    )


def _begins_often(facts: Facts) -> bool:
    """Tell whether the edges of epochs were seen to cost something at all."""
    return epoch_edge_share(facts) >= 0.02


def _restarts(cost: Cost) -> bool:
    if cost.role != "trainer" or cost.phase not in ("epoch_edge", "data_wait", "other"):
        return False
    starting = sum(ns for leaf, ns in cost.leaves if any(name in leaf for name in _STARTING))
    return starting >= 0.5 * sum(ns for _, ns in cost.leaves) > 0
