"""Exclusive time accounts of one thread.

At any instant exactly one account is open, so their sum is the wall time, without gap or overlap.
Entering a span switches the account, leaving it switches back: a span inside another one is
taken out of it.
"""

from __future__ import annotations

from typing import Final

from hotlap.fast.choice import Ledger
from hotlap.values.phase import ACCOUNTS

(
    DATA_WAIT,
    TRANSFER,
    FORWARD,
    BACKWARD,
    OPTIMIZER,
    COMMUNICATION,
    LOGGING,
    OTHER,
    EVALUATION,
    CHECKPOINT,
    EPOCH_EDGE,
    COMPILE,
) = range(len(ACCOUNTS))
WIDTH: Final = len(ACCOUNTS)

__all__ = [
    "BACKWARD",
    "CHECKPOINT",
    "COMMUNICATION",
    "COMPILE",
    "DATA_WAIT",
    "EPOCH_EDGE",
    "EVALUATION",
    "FORWARD",
    "LOGGING",
    "OPTIMIZER",
    "OTHER",
    "TRANSFER",
    "WIDTH",
    "Ledger",
]
