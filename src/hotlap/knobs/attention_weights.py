"""# attention_weights: attention returns no weights

**What.** `nn.MultiheadAttention` returns its weights by default, and writes out the matrices of all
heads to do so. With this knob it returns None for them, and calls the fused
`scaled_dot_product_attention`.

**Where it helps.** Where attention is written out and nothing uses the weights. A script that uses
them fails with this knob, or does something else: then they are needed.

**What else it changes.** The last bits of sums.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from hotlap.knobs.offers import best_trial, judged, named_by, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "attention_weights"
PHASE: Final = "forward"
NUMERICS: Final = ("rounding",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it where a finding or a trial has shown that weights are made and not needed."""
    if named_by(case, NAME) is None and best_trial(case.facts, NAME) is None:
        return No("no attention was seen that makes weights which nothing needs")
    because = "attention writes out its weights"
    share = share_of(case.facts, "forward", "backward")
    return judged(case, NAME, share, Offer((False,), NUMERICS[0], because))


def apply(target: Target, wanted: Any) -> None:
    """Let ``nn.MultiheadAttention`` return no weights, though the script did not say so."""
    owner = sys.modules["torch"].nn.MultiheadAttention
    own = owner.forward

    @functools.wraps(own)
    def forward(
        self: Any,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if need_weights and not wanted:
            target.acted("weights were asked for, and not made")
            need_weights = False
        return own(self, query, key, value, key_padding_mask, need_weights, *args, **kwargs)

    target.replace(owner, "forward", forward)


def snippet(value: Any) -> str:
    """Return the call to have in place of the script's own."""
    return f"out, _ = attention(query, key, value, need_weights={bool(value)})"
