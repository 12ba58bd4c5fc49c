"""What ``nn.MultiheadAttention`` costs when it need not return its weights."""

from __future__ import annotations

import functools
import sys
from typing import Any

from hotlap.inject.conditions.change import Change


def attention_weights(change: Change) -> None:
    """Let ``nn.MultiheadAttention`` return no weights, though the script did not say so.

    A script that uses them fails in this trial, or does something else: the trial proves nothing
    then but that they are needed.
    """
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
        if need_weights and not change.value:
            change.acted("weights were asked for, and not made")
            need_weights = False
        return own(self, query, key, value, key_padding_mask, need_weights, *args, **kwargs)

    change.replace(owner, "forward", forward)
