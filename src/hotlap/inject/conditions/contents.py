"""What model, batches and data set hold that decides how much of the work is needed.

Looked at once, after a few steps: parameters that get gradients though no optimizer has them,
embedding tables, how much of padded batches is padding, and arrays whose rows lie scattered.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

from hotlap.inject.conditions import batches

_MOST: Final = 1 << 16
_LARGE: Final = 1 << 20
"""Bytes from which on the order of an array matters: smaller ones stay in the caches."""
_DEEP: Final = 4
"""Data sets around data sets that are looked through."""
_NARROW: Final = 8
"""Rows shorter than this are no sequences."""


def parameters(models: Iterable[Any], optimizers: Iterable[Any]) -> dict[str, int]:
    """Return counts of elements: that get gradients, that no optimizer has, in embeddings.

    models: root modules. optimizers: those that step. Empty where there is no model.
    """
    held = {
        id(one)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for one in group["params"]
    }
    seen: dict[int, Any] = {}
    tables: set[int] = set()
    for model in models:
        for one in list(model.parameters())[:_MOST]:
            seen[id(one)] = one
        tables |= {id(one.weight) for one in model.modules() if _is_dense_table(one)}
    graded = [one for one in seen.values() if one.requires_grad]
    if not graded or not held:
        return {}
    return {
        "trainable_elements": sum(one.numel() for one in graded),
        "unheld_elements": sum(one.numel() for one in graded if id(one) not in held),
        "table_elements": sum(one.numel() for one in graded if id(one) in tables),
    }


def _is_dense_table(module: Any) -> bool:
    kinds = sys.modules["torch"].nn
    return isinstance(module, (kinds.Embedding, kinds.EmbeddingBag)) and not module.sparse


def padded_rows(batch: Any) -> list[tuple[float, float, float]]:
    """Return width, longest row and mean row of each tensor of padded ids in a batch.

    A row ends where only one value follows, the same in most rows of the tensor. Cost: some 50 us
    for a tensor of 64 rows. Empty where the batch holds no such rows.
    """
    found = (_rows(tensor) for tensor in batches.tensors(batch))
    return [one for one in found if one is not None]


def padding(rows: list[tuple[float, float, float]]) -> dict[str, float]:
    """Return the means over what ``padded_rows`` gave; empty for none."""
    if not rows:
        return {}
    width, longest, mean = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return {"padded_width": width, "padded_longest": longest, "padded_mean": mean}


def _rows(tensor: Any) -> tuple[float, float, float] | None:
    torch = sys.modules["torch"]
    if tensor.dtype not in (torch.int64, torch.int32) or tensor.dim() != 2:
        return None
    rows, width = tensor.shape
    if rows < 2 or width < _NARROW:
        return None
    with torch.no_grad():
        ids = tensor.detach().cpu()
        # The commonest last value: a row that fills the width ends in a word of its own.
        filler = ids[:, -1].mode().values
        real = (ids != filler).flip(1)
        lengths = width - real.to(torch.int8).argmax(1)
        lengths[~real.any(1)] = 0
        if int((ids[:, -1] == filler).sum()) * 2 < rows:
            return None  # no filler: rows end in words of their own
        return float(width), float(lengths.max()), float(lengths.float().mean())


def scattered_arrays(datasets: Iterable[Any]) -> dict[str, list[list[Any]]]:
    """Return name, shape and whether it is a memory map of arrays whose rows are not contiguous.

    A sample that is one row of such an array is gathered from places that lie far apart. datasets:
    each looked through with the data sets that it wraps. Reads no data. Empty for none.
    """
    found = [row for one in datasets for row in _scattered(one, _DEEP)]
    return {"scattered_arrays": found[:_NARROW]} if found else {}


def _scattered(dataset: Any, deep: int) -> Iterable[list[Any]]:
    held = getattr(dataset, "__dict__", None)
    if not isinstance(held, dict):
        return
    for name, value in list(held.items()):
        if name == "dataset" and deep:
            yield from _scattered(value, deep - 1)
        elif _is_large(value) and not _is_contiguous(value[0]):
            mapped = type(value).__name__ == "memmap"
            yield [name, [int(length) for length in value.shape], mapped]


def _is_large(value: Any) -> bool:
    numpy, torch = sys.modules.get("numpy"), sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return False
    elif numpy is None or not isinstance(value, numpy.ndarray):
        return False
    return len(value.shape) >= 2 and value.shape[0] > 1 and int(value.nbytes) >= _LARGE


def _is_contiguous(row: Any) -> bool:
    flags = getattr(row, "flags", None)
    return bool(row.is_contiguous() if flags is None else flags.c_contiguous)
