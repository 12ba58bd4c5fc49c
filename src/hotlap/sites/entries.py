"""Entry points of libraries: functions and methods named in a table, wrapped where they exist."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from hotlap.sites.around import around
from hotlap.sites.hub import Channel
from hotlap.sites.patches import Patches

Entries = Mapping[str, tuple[tuple[str | None, str], ...]]
"""Module: pairs of class (None: the module itself) and function."""


def wrap_entries(
    entries: Entries,
    channel: Channel,
    subject: Callable[[tuple[Any, ...]], Any],
    patches: Patches,
) -> None:
    """Wrap the entries of every module that has been imported by now, each once.

    Those that a library does not have (another version) are left out.
    """
    for module, pairs in entries.items():
        place = sys.modules.get(module)
        for owner_name, name in pairs:
            owner = place if owner_name is None else getattr(place, owner_name, None)
            original = vars(owner).get(name) if owner is not None else None
            if callable(original) and not patches.hold(owner, name):
                patches.set(channel.name, owner, name, around(original, channel, subject))
