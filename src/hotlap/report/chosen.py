"""Which of several loaders a report shows."""

from __future__ import annotations

from hotlap.values.summary import LoaderSummary, ProcessSummary


def shown_loaders(one: ProcessSummary) -> list[tuple[LoaderSummary, int]]:
    """Return the training loaders, those that gave most batches first.

    Loaders alike that the same line made (one per fold or epoch) are represented by the one that
    gave most batches; with each stands how many it represents. When no loader is known to train,
    those that gave batches.
    """
    given = [loader for loader in one.loaders if loader.role == "training"]
    if not given:
        given = [loader for loader in one.loaders if loader.batches]
    alike: dict[object, list[LoaderSummary]] = {}
    for loader in sorted(given, key=lambda loader: -loader.batches):
        key = (loader.dataset, loader.place, loader.batch_size, loader.workers)
        alike.setdefault(key if loader.place else loader.ordinal, []).append(loader)
    return [(group[0], len(group)) for group in alike.values()]
