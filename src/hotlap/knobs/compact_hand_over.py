"""# compact_hand_over: workers hand over the small tensors of a batch as one

**What.** Each tensor that a worker passes on travels in a piece of shared memory of its own, whose
handle is sent through a socket: tens to hundreds of microseconds, however small it is. With this
knob the small tensors of a batch are sent as one, and taken apart in the training process.

**Where it helps.** Loaders with workers whose batches hold many small tensors: tables with a column
each, nested samples, lists that were not put together.

**What else it changes.** Nothing: the same batches. Their small tensors lie in ordinary memory, not
in shared memory.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from typing import Any, Final

from hotlap.knobs.loader_argument import workers_of
from hotlap.knobs.offers import judged, named_by, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of, training_loader

NAME: Final = "compact_hand_over"
PHASE: Final = "data_wait"
NUMERICS: Final = ("identical",)
environment = no_variables
_LEAST_TENSORS: Final = 3
_SMALL: Final = 128 << 10
"""Bytes: a tensor that is larger is not copied twice to spare a handle."""
_LEAST_PART: Final = 0.1
"""Part of a batch's preparation below which handing over is no matter."""


def applies(case: Case) -> Offer | No:
    """Offer it where handing over takes part of the workers' time."""
    if not workers_of(case):
        return No("no loader with workers feeds the training")
    loader = training_loader(case.facts)
    part = loader.split.get("ipc") if loader is not None else None
    known = part.share if part is not None else None
    if named_by(case, NAME) is None and (known is None or known < _LEAST_PART):
        return No("handing batches over takes no time that was seen")
    because = "workers spend part of their time on handing batches over"
    share = share_of(case.facts, "data_wait")
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Pack batches in workers, and take them apart where they are received."""
    if not value:
        return
    data = sys.modules["torch"].utils.data
    iterator = data.dataloader._MultiProcessingDataLoaderIter
    if not hasattr(iterator, "_try_get_data"):
        target.note("this torch receives batches in another way")
        return
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        _pack_fetched(target, getattr(data._utils.fetch, name))
    own_get, own_pin = iterator._try_get_data, data._utils.pin_memory.pin_memory

    @functools.wraps(own_get)
    def _try_get_data(self: Any, *args: Any, **kwargs: Any) -> Any:
        found, received = own_get(self, *args, **kwargs)
        if found and isinstance(received, tuple) and len(received) == 2:
            received = (received[0], _received(target, received[1]))
        return found, received

    @functools.wraps(own_pin)
    def pin_memory(batch: Any, *args: Any, **kwargs: Any) -> Any:
        return own_pin(_received(target, batch), *args, **kwargs)

    target.replace(iterator, "_try_get_data", _try_get_data)
    target.replace(data._utils.pin_memory, "pin_memory", pin_memory)


def _pack_fetched(target: Target, fetcher: Any) -> None:
    own = fetcher.fetch
    data = sys.modules["torch"].utils.data

    @functools.wraps(own)
    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        batch = own(self, possibly_batched_index)
        if data.get_worker_info() is None:
            return batch
        try:
            return packed(batch)
        except Exception as error:
            target.note(f"a batch was handed over as it is: {type(error).__name__}: {error}"[:300])
            return batch

    target.replace(fetcher, "fetch", fetch)


def _received(target: Target, batch: Any) -> Any:
    if type(batch) is not Packed:
        return batch
    target.acted(f"{len(batch.kinds)} tensors of a batch were handed over as one")
    return batch.unpacked()


class Slot:
    """Where in a batch a tensor stood."""

    def __init__(self, number: int) -> None:
        self.number = number


class Packed:
    """A batch whose small tensors are one. kinds: of each, its type and shape."""

    def __init__(self, batch: Any, tensors: list[Any]) -> None:
        torch = sys.modules["torch"]
        numbers = {id(one): number for number, one in enumerate(tensors)}
        self.kinds = [(one.dtype, tuple(one.shape)) for one in tensors]
        self.sizes = [one.nbytes for one in tensors]
        self.bytes = torch.cat([one.reshape(-1).view(torch.uint8) for one in tensors])
        self.batch = _replaced(batch, lambda one: Slot(numbers[id(one)]), numbers)

    def unpacked(self) -> Any:
        """Return the batch, with its tensors in memory of their own."""
        parts = self.bytes.split(self.sizes)
        made = [
            part.clone().view(dtype).view(shape)
            for part, (dtype, shape) in zip(parts, self.kinds, strict=True)
        ]
        return _filled(self.batch, made)


def packed(batch: Any) -> Any:
    """Return a batch with its small tensors packed; itself where it holds too few of them."""
    found: list[Any] = []
    _gather(batch, found)
    at = Counter(one.data_ptr() for one in found)
    alone = [one for one in found if at[one.data_ptr()] == 1]
    return Packed(batch, alone) if len(alone) >= _LEAST_TENSORS else batch


def _gather(value: Any, found: list[Any]) -> None:
    if type(value) in (list, tuple):
        for one in value:
            _gather(one, found)
    elif type(value) is dict:
        for one in value.values():
            _gather(one, found)
    elif type(value) is sys.modules["torch"].Tensor and _is_small(value):
        found.append(value)


def _is_small(tensor: Any) -> bool:
    """Tell whether a tensor is plain, small, and all that there is in its memory."""
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.requires_grad:
        return False
    if not 0 < tensor.nbytes <= _SMALL or not tensor.is_contiguous() or tensor.is_quantized:
        return False
    if tensor.is_conj() or tensor.is_neg() or vars(tensor):
        return False
    return bool(tensor.untyped_storage().nbytes() == tensor.nbytes)


def _replaced(value: Any, change: Any, numbers: dict[int, int]) -> Any:
    if id(value) in numbers:
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_replaced(one, change, numbers) for one in value)
    if type(value) is dict:
        return {key: _replaced(one, change, numbers) for key, one in value.items()}
    return value


def _filled(value: Any, made: list[Any]) -> Any:
    if type(value) is Slot:
        return made[value.number]
    if type(value) in (list, tuple):
        return type(value)(_filled(one, made) for one in value)
    if type(value) is dict:
        return {key: _filled(one, made) for key, one in value.items()}
    return value


def snippet(_value: Any) -> str:
    """Return what to do in the collate function."""
    return (
        "def collate(samples):\n"
        "    return torch.stack([torch.stack(one) for one in samples])  # one tensor, not many"
    )
