"""The frames in which a trial writes what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from hotlap.inject.conditions.caches import function_caches
from hotlap.inject.conditions.deliveries import Source
from hotlap.probe.places import Places
from hotlap.runs import frames
from hotlap.values.trial import WindowResult

_MOST_SEGMENTS: Final = 500


def result_frame(
    result: WindowResult, segments: Sequence[tuple[int, int]], used: Sequence[Source]
) -> bytes:
    """Return the frame of what a window measured.

    segments: where in it was measured, if not all the time. used: the loaders that feed the steps.
    """
    known = [source.known for source in used]
    written = {
        **asdict(result),
        "segments": list(segments)[:_MOST_SEGMENTS],
        "loaders": [one.ordinal for one in known],
        "datasets": sorted({one.facts["dataset"] for one in known}),
    }
    return frames.encode_json("winr", written)


def facts_frame(found: Mapping[str, Any], places: Places) -> bytes:
    """Return the frame of what is known of the training. places: of the user's source."""
    caches = function_caches(places.is_users, places.shown)
    return frames.encode_json("fact", {"switches": {**found, **caches}})
