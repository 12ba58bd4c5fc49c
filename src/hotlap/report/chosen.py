"""Which of several loaders a report shows."""

from __future__ import annotations

from hotlap.values.summary import LoaderSummary, ProcessSummary


def shown_loaders(one: ProcessSummary) -> list[LoaderSummary]:
    """Return the training loaders, those that gave most batches first.

    When no loader is known to train, those that gave batches.
    """
    given = [loader for loader in one.loaders if loader.role == "training"]
    if not given:
        given = [loader for loader in one.loaders if loader.batches]
    return sorted(given, key=lambda loader: -loader.batches)
