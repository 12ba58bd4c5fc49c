"""# HL114 input-scattered-rows: samples are rows of an array that is stored the other way round

**What.** Each sample is one row of an array whose rows are not contiguous in memory (column by
column, "Fortran order", or a transposed view). Reading a row gathers its values from places that
lie far apart: each costs a cache line, or in a memory map a page.

**How it is measured.** The arrays that the data set holds are looked at (shape and strides, no
data), and the lines that read them are found in the sampled stacks.

**When it is wrong.** Where most of the line is something else than reading the row.

**What to do.** Store the array row by row, once (`np.ascontiguousarray`, `.contiguous()`).
"""

from __future__ import annotations

import re

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.input import input_of, relief
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, line_of, percent, texts_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL114"
NAME = "input-scattered-rows"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the order of the arrays that samples are rows of."""
    arrays = facts.defaults.get("scattered_arrays")
    if not isinstance(arrays, (list, tuple)) or not arrays:
        return Clear("the data set holds no large array whose rows lie scattered")
    data = input_of(facts)
    if data is None or data.region is None or not worth(facts, data.wait):
        return Clear("the training hardly waits for data")
    for name, shape, mapped in arrays:
        reads = [one for one in data.region.costs if _mentions(facts, one, str(name))]
        region = region_of(reads, costs_of(facts))
        if region is None or not worth(facts, region.share):
            continue
        kind = "memory-mapped array" if mapped else "array"
        size = " x ".join(str(length) for length in shape)
        return finding(
            facts,
            Rule(CODE, NAME),
            region,
            Claim(
                phase="data_wait",
                share=relief(facts, data, region.share, least=0.9),
                first=region.line,
                reason=True,
                remedy=Remedy("code", (), "nothing: the same values in another order in memory"),
                say=(
                    f"{percent(region.share)} of the time goes into reading rows of `{name}` at "
                    f"{at(region.line)}: {texts_of(facts, region.costs)}. This {kind} ({size}) is "
                    "stored column by column (Fortran order, or a transposed view), so that each "
                    "row is gathered from places far apart in memory. Store it row by row, "
                    "contiguous, once (np.ascontiguousarray)."
                ),
                evidence=(Evidence("array", f"{name} {size}", "shape"),),
            ),
        )
    return Clear("reading rows of such arrays takes little time")


def _mentions(facts: Facts, cost: Cost, name: str) -> bool:
    line = line_of(facts, cost.place)
    texts = [text for text, _ in cost.expressions] or [line.text if line else ""]
    return any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)
