"""Taking a batch of rows by one index, as ``plain_samples`` has found out that it can be done."""

from __future__ import annotations

import sys
from typing import Any

from hotlap.knobs.plain_samples import Converted, Index, Made, NoPlan, Row


class Rows:
    """The rows of one batch. indices: of the data set itself, plain and within its length."""

    def __init__(self, dataset: Any, indices: list[int]) -> None:
        self._torch = sys.modules["torch"]
        self._dataset = dataset
        self._indices = indices
        self._index = self._torch.tensor(indices)
        self._is_tensors = type(dataset) is self._torch.utils.data.TensorDataset

    def batch(self, node: Any) -> Any:
        """Return what the default collate would make of the samples; raises NoPlan."""
        if isinstance(node, Made):
            made = [self.batch(one) for one in node.nodes]
            return dict(zip(node.keys, made, strict=True)) if node.kind is dict else made
        if isinstance(node, Index):
            return self._index.clone()
        value = self._value(node)
        if isinstance(value, list):
            value = self._of_numbers(value)
        elif not isinstance(value, self._torch.Tensor):
            value = self._torch.as_tensor(value)
        return value.contiguous()

    def _value(self, node: Any) -> Any:
        if isinstance(node, Row):
            return self._rows(node.name)
        if not isinstance(node, Converted):
            raise NoPlan("no row")
        value, how = self._value(node.node), node.how
        if how.startswith("."):
            return getattr(value, how[1:])(*node.args, **dict(node.kwargs))
        if how in ("int", "float"):
            wanted = self._torch.int64 if how == "int" else self._torch.float64
            value = self._torch.as_tensor(value)
            if value.dim() != 1:
                raise NoPlan("rows are no single numbers")
            return value.to(wanted)
        return getattr(self._torch, how)(value, *node.args, **dict(node.kwargs))

    def _rows(self, name: str) -> Any:
        torch, numpy = self._torch, sys.modules.get("numpy")
        if self._is_tensors:
            field = self._dataset.tensors[int(name)]
        else:
            held = vars(self._dataset)
            if name not in held or hasattr(getattr(type(self._dataset), name, None), "__set__"):
                raise NoPlan(f"{name} is no plain attribute")
            field = held[name]
        if type(field) is torch.Tensor:
            if field.requires_grad or field.device.type != "cpu" or field.layout != torch.strided:
                raise NoPlan(f"{name} is no plain tensor")
            return self._gathered(field)
        if numpy is not None and type(field) in (numpy.ndarray, numpy.memmap):
            return numpy.asarray(field[self._index.numpy()])
        if type(field) is list:
            return [field[one] for one in self._indices]
        raise NoPlan(f"{name} is neither tensor nor array nor list")

    def _gathered(self, field: Any) -> Any:
        """Return the rows in memory of their own, which a worker shares as torch's collate does."""
        torch = self._torch
        if torch.utils.data.get_worker_info() is None:
            return torch.index_select(field, 0, self._index)
        shape = (len(self._indices), *field.shape[1:])
        storage = field._typed_storage()._new_shared(
            len(self._indices) * field[0].numel(), device=field.device
        )
        out = field.new(storage).resize_(*shape)
        return torch.index_select(field, 0, self._index, out=out)

    def _of_numbers(self, values: list[Any]) -> Any:
        kinds = set(map(type, values))
        if kinds == {int}:
            return self._torch.tensor(values)
        if kinds == {float}:
            return self._torch.tensor(values, dtype=self._torch.float64)
        raise NoPlan("a list holds something else than numbers")


def are_the_same(one: Any, other: Any) -> bool:
    """Tell whether two batches have the same structure and, bit for bit, the same tensors."""
    torch = sys.modules["torch"]
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(are_the_same(a, b) for a, b in pairs)
    if isinstance(one, dict):
        return list(one) == list(other) and all(are_the_same(one[key], other[key]) for key in one)
    if type(one) is not torch.Tensor:
        return False
    about = [(x.dtype, x.shape, x.stride(), x.device, x.requires_grad) for x in (one, other)]
    return about[0] == about[1] and bool(
        torch.equal(one.view(torch.uint8), other.view(torch.uint8))
    )
