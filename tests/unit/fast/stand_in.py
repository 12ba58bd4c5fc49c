"""A torch as far as our sites look at one: so hooks can be driven in any Python, without it."""

from __future__ import annotations

import sys
from collections import OrderedDict
from types import ModuleType, SimpleNamespace
from typing import Any


class Refused(RuntimeError):
    """What the user's own code raises."""


class Module:
    """A model: a call runs what it was given to do."""

    parameters: Any = None

    def __init__(self, *parts: Module) -> None:
        self.parts = parts
        self.training = True

    def __call__(self, work: Any = None) -> Any:
        return None if work is None else work()

    def modules(self) -> Any:
        """Yield this module and those inside it."""
        yield self
        for part in self.parts:
            yield from part.modules()

    def train(self, mode: bool = True) -> Module:
        """Switch this module and those inside it."""
        for part in self.parts:
            part.train(mode)
        self.training = mode
        return self


class Tensor:
    """A tensor: a read runs what it was given to do."""

    requires_grad = False
    device = SimpleNamespace(type="cpu")
    work: Any = None

    def item(self) -> Any:
        return None if self.work is None else self.work()

    cpu = numpy = tolist = item

    def __bool__(self) -> bool:
        return True

    def __float__(self) -> float:
        return 1.0

    def __int__(self) -> int:
        return 1

    def __format__(self, form: str) -> str:
        return "1"

    def __repr__(self) -> str:
        return "1"


class Handle:
    """What takes a hook out again."""

    def __init__(self, held: dict[int, Any], hook: Any) -> None:
        self.held, self.id = held, id(self)
        held[self.id] = hook

    def remove(self) -> None:
        """Take it out."""
        self.held.pop(self.id, None)


class Optimizer:
    """An optimizer whose step runs what it was given to do, between torch's hooks."""

    param_groups: Any = ()

    def __init__(self) -> None:
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        """Put torch's own wrapper around ``step``: here it is part of it."""

    def step(self, work: Any = None) -> None:
        """Step."""
        for hook in list(optimizers._global_optimizer_pre_hooks.values()):
            assert hook(self, (), {}) is None
        if work is not None:
            work()
        for hook in list(optimizers._global_optimizer_post_hooks.values()):
            hook(self, (), {})

    def zero_grad(self, work: Any = None) -> None:
        """Clear the gradients."""
        if work is not None:
            work()


class Fetcher:
    """Makes batches."""

    def __init__(self, dataset: Any, collate_fn: Any) -> None:
        self.dataset, self.collate_fn = dataset, collate_fn

    def fetch(self, work: Any) -> Any:
        """Make one."""
        return self.collate_fn([None if work is None else work()])


class Iterator:
    """An iterator over a loader: each of its batches runs what it was given to do."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        self.fetcher = data_fetch._MapDatasetFetcher(loader.dataset, lambda batch: batch)

    def __next__(self) -> Any:
        if not self.loader.work:
            raise StopIteration
        return self.fetcher.fetch(self.loader.work.pop(0))


class DataLoader:
    """A loader of 8 samples a batch, without workers."""

    dataset = (1, 2, 3)
    batch_size = 8
    batch_sampler = sampler = prefetch_factor = None
    num_workers = 0
    pin_memory = persistent_workers = False

    def __init__(self) -> None:
        self.work: list[Any] = []

    def __len__(self) -> int:
        return len(self.work)

    def __iter__(self) -> Any:
        return dataloader._BaseDataLoaderIter(self)


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(names)
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
    return module


def backward(work: Any = None) -> Any:
    """Run a backward pass."""
    return None if work is None else work()


def grad(work: Any = None) -> Any:
    """Compute gradients."""
    return None if work is None else work()


class _Nothing:
    """A context that changes nothing."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


gradients = [True]
torch = _module(
    "torch",
    __version__="0",
    version=SimpleNamespace(cuda=None, hip=None),
    backends=SimpleNamespace(mps=SimpleNamespace(is_built=lambda: False)),
    compiler=SimpleNamespace(is_compiling=lambda: False, is_dynamo_compiling=lambda: False),
    is_grad_enabled=lambda: gradients[0],
    Tensor=Tensor,
    _C=SimpleNamespace(_is_tracing=lambda: False, DisableTorchFunction=_Nothing),
    cuda=SimpleNamespace(is_initialized=lambda: False, synchronize=lambda: None),
    get_num_threads=lambda: 1,
    get_num_interop_threads=lambda: 1,
    distributed=SimpleNamespace(is_available=lambda: False),
    is_warn_always_enabled=lambda: False,
)
_module("torch.nn", Module=Module)
_module("torch.autograd", backward=backward, grad=grad)
_module("torch.optim")
optimizers: Any = _module(
    "torch.optim.optimizer",
    Optimizer=Optimizer,
    _global_optimizer_pre_hooks=OrderedDict(),
    _global_optimizer_post_hooks=OrderedDict(),
)
optimizers.register_optimizer_step_pre_hook = lambda hook: Handle(
    optimizers._global_optimizer_pre_hooks, hook
)
optimizers.register_optimizer_step_post_hook = lambda hook: Handle(
    optimizers._global_optimizer_post_hooks, hook
)
_module("torch.utils")
_module(
    "torch.utils.data",
    DataLoader=DataLoader,
    IterableDataset=type("IterableDataset", (), {}),
    TensorDataset=type("TensorDataset", (), {}),
    get_worker_info=lambda: None,
)
_module("torch.utils.data._utils")
data_fetch: Any = _module(
    "torch.utils.data._utils.fetch",
    _BaseDatasetFetcher=Fetcher,
    _MapDatasetFetcher=Fetcher,
    _IterableDatasetFetcher=type("_Iterable", (Fetcher,), {"fetch": Fetcher.fetch}),
)
dataloader: Any = _module(
    "torch.utils.data.dataloader", DataLoader=DataLoader, _BaseDataLoaderIter=Iterator
)
