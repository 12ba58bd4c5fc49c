"""torch's operators by the user's line: how many, how long, and whether they are the model's own.

Heavy operators do the arithmetic that a model is for (matrix products, convolutions, attention,
recurrent layers); the others move, reshape or fill memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hotlap.values.facts import Facts, Measured
from hotlap.values.record import Place
from hotlap.values.trial import OperatorEntry

_HEAVY = re.compile(
    r"mm$|::(add|bad)?b?mm|matmul|linear|conv|lstm|gru|rnn|attention|einsum|bilinear|mkldnn|"
    r"embedding_bag|cdist_|_fft|::dot$|::mv$|::addmv"
)


@dataclass(frozen=True)
class Operators:
    """Operators of one or several lines, per step. ns: their own time."""

    calls: float
    ns: float
    heavy_ns: float
    names: tuple[tuple[str, float], ...]
    dtypes: frozenset[str]

    @property
    def heavy_share(self) -> float:
        """Return the share of the time in heavy operators (0-1)."""
        return self.heavy_ns / self.ns if self.ns else 0.0

    @property
    def mean_ns(self) -> float:
        """Return the mean time of one call."""
        return self.ns / self.calls if self.calls else 0.0


def all_operators(facts: Facts) -> tuple[OperatorEntry, ...]:
    """Return every entry; empty where operators were not profiled."""
    return facts.operators.value if isinstance(facts.operators, Measured) else ()


def operators_at(facts: Facts, keys: Iterable[str]) -> Operators | None:
    """Return the operators of the lines ``file:line``; None where none was seen."""
    wanted = frozenset(keys)
    return summed(
        one
        for one in all_operators(facts)
        if one.place is not None and f"{one.place.file}:{one.place.line}" in wanted
    )


def summed(entries: Iterable[OperatorEntry]) -> Operators | None:
    """Return entries as one; None where there are none."""
    chosen = list(entries)
    if not chosen:
        return None
    by_name: dict[str, float] = {}
    for one in chosen:
        by_name[one.name] = by_name.get(one.name, 0.0) + one.ns
    return Operators(
        calls=sum(one.calls for one in chosen),
        ns=sum(one.ns for one in chosen),
        heavy_ns=sum(one.ns for one in chosen if is_heavy(one.name)),
        names=tuple(sorted(by_name.items(), key=lambda pair: -pair[1]))[:8],
        dtypes=frozenset(name for one in chosen for name in one.dtypes),
    )


def is_heavy(name: str) -> bool:
    """Tell whether an operator does the arithmetic that models are for."""
    return bool(_HEAVY.search(name))


def dtype_share(facts: Facts, words: tuple[str, ...]) -> float | None:
    """Return the share of heavy operators' time that runs in one of these types.

    None where operators were not profiled.
    """
    heavy = [one for one in all_operators(facts) if is_heavy(one.name)]
    whole = sum(one.ns for one in heavy)
    if not whole:
        return None
    inside = sum(one.ns for one in heavy if any(word in one.dtypes for word in words))
    return inside / whole


_SOFTMAX = frozenset(("aten::softmax", "aten::_softmax"))
_PRODUCTS = frozenset(("aten::bmm", "aten::baddbmm"))


def written_out_attention(facts: Facts) -> tuple[list[Place], float]:
    """Return lines of the forward pass that hold an attention's products and its softmax.

    And the share (0-1) of the operators' time that goes there, with the backward pass. That is
    attention written out matrix by matrix, inside one call: a fused one is a single operator.
    """
    names: dict[Place, set[str]] = {}
    for one in all_operators(facts):
        if one.place is not None and one.phase == "forward" and one.forward is None:
            names.setdefault(one.place, set()).add(one.name)
    found = [place for place, seen in names.items() if seen & _SOFTMAX and seen & _PRODUCTS]
    whole = sum(one.ns for one in all_operators(facts))
    here = sum(
        one.ns for one in all_operators(facts) if (one.forward or one.place) in frozenset(found)
    )
    return found, here / whole if whole else 0.0
