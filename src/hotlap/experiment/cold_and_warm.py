"""What a window over cold and warm samples says of the storage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from hotlap.values.facts import Measured, Missing, Storage
from hotlap.values.trial import WindowResult

ORIGIN: Final = "storage window of the ceilings trial: one reader, the files let go of before"
_NOTICEABLE: Final = 0.1
"""Share of a cold sample's time below which its waits set no bound worth naming."""
_NEEDED: Final = {
    "samples": "samples",
    "files": "files",
    "file_bytes": "file_bytes",
    "cold_ns": "cold_wall_ns",
    "warm_ns": "warm_wall_ns",
    "cold_blocked_ns": "cold_blocked_ns",
    "warm_blocked_ns": "warm_blocked_ns",
}
"""Fields of ``Storage``, and their names in the split of a window."""
_NOT_TRIED: Final = "the input takes too little of the time for it to matter"


def storage(windows: Iterable[WindowResult]) -> Measured[Storage] | Missing:
    """Return the last comparison among the windows of a trial, or why there is none."""
    because = _NOT_TRIED
    for one in reversed(list(windows)):
        if one.kind != "storage":
            continue
        found = _of(one)
        if found is not None:
            return Measured(found, "; ".join((ORIGIN, *one.notes)))
        because = one.ended_by.removeprefix("failed: ") or because
    return Missing(because)


def cross_checked(
    fetch: Measured[float] | Missing, found: Measured[Storage] | Missing
) -> Measured[float] | Missing:
    """Return F, with what the cold and the warm samples add to where it comes from.

    fetch: as the loader's own split gives it, in whatever state the page cache was.
    """
    if isinstance(found, Missing):
        return fetch
    seen = found.value
    waits = seen.cold_blocked_ns
    if isinstance(fetch, Missing):
        if waits <= _NOTICEABLE * seen.cold_ns:
            return fetch
        per_s = seen.samples * 1e9 / waits
        return Missing(
            "what the loader read lay in memory, and nothing had to be waited for; from storage "
            f"one reader would get {per_s:,.0f} samples per second of waiting"
        )
    cold, warm = (ns / seen.samples / 1e6 for ns in (waits, seen.warm_blocked_ns))
    words = f"one reader waits {cold:.2f} ms a sample from storage, {warm:.2f} ms from memory"
    return replace(fetch, origin=f"{fetch.origin}; {words}")


def _of(window: WindowResult) -> Storage | None:
    """Return what a window saw; None where a figure is missing that all others need."""
    known = {name: window.split.get(key) for name, key in _NEEDED.items()}
    whole = {name: value for name, value in known.items() if value is not None}
    if len(whole) < len(known) or not whole["samples"]:
        return None
    return Storage(**whole, read_bytes=window.split.get("cold_read_bytes"))
