"""Reads of a tensor's value by the host: on a device they wait for its queue.

Channel ``tensor_read``: begin's subject = the kind; end's = (kind, type of the tensor's device,
``cpu`` where a read waits for nothing; None for ``torch.cuda.synchronize``).
"""

from __future__ import annotations

import functools
from types import MethodType
from typing import Any

from hotlap.fast.choice import hooks
from hotlap.sites.around import hide_this_frame
from hotlap.sites.hub import Channel, Hub
from hotlap.sites.patches import Patches
from hotlap.sites.tensor_copy import device_type

MODULES = ("torch",)
CHANNELS = ("tensor_read",)
KINDS = {
    "item": "item",
    "cpu": "cpu",
    "numpy": "numpy",
    "tolist": "tolist",
    "__bool__": "bool",
    "__float__": "float",
    "__int__": "int",
    "__format__": "format",
    "__repr__": "repr",
}
WARNS_OF_GRADIENTS = "__float__"
"""The one in which torch warns of a tensor that requires a gradient."""


class _Method:
    """A method of ``torch.Tensor`` that is told of when it is called on a tensor.

    On the class it stays torch's own: what pickles it, prints it or is handed it by a
    ``__torch_function__`` notices nothing. Warnings that torch raises inside name the frame that
    called it; where one is due the call goes there directly and is not told of.
    """

    def __init__(self, original: Any, read: Any, torch: Any, channel: Channel) -> None:
        self.__func__ = read
        self._where, self._unheard = channel.unheard
        self.original = original
        self._bind = original.__get__
        self.is_tracing = getattr(torch._C, "_is_tracing", lambda: False)
        self._torch = torch
        self._warns = original.__name__ == WARNS_OF_GRADIENTS
        self._warned = False

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self.original
        if self._where is not None and self._where.current in self._unheard:
            return self._bind(tensor, owner)
        if self.is_tracing() or (self._warns and self._warns_now(tensor)):
            return self._bind(tensor, owner)
        return MethodType(self.__func__, tensor)

    def _warns_now(self, tensor: Any) -> bool:
        """Tell whether torch warns of this tensor's gradient: once in a process, if not always."""
        with self._torch._C.DisableTorchFunction():
            if not tensor.requires_grad:
                return False
        due = not self._warned or self._torch.is_warn_always_enabled()
        self._warned = True
        return bool(due)


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the reading methods of ``torch.Tensor`` and ``torch.cuda.synchronize``."""
    import torch

    channel = hub.channel("tensor_read")
    for name, kind in KINDS.items():
        original = getattr(torch.Tensor, name)
        read = _wrap(original, kind, hub, torch)
        method = _Method(original, read, torch, channel)
        hook = channel.hook("read", original, read, kind)
        patches.set("tensor_read", torch.Tensor, name, _compiled(method, hook, channel))
    patches.code(_Method.__get__)
    patches.code(_Method._warns_now)
    synchronize = _wrap(torch.cuda.synchronize, "synchronize", hub, torch)
    patches.set("tensor_read", torch.cuda, "synchronize", synchronize)


def _compiled(method: _Method, hook: Any, channel: Channel) -> Any:
    if hooks is None or hook is method.__func__:
        return method
    ledger, _ = channel.unheard
    warns = method.original.__name__ == WARNS_OF_GRADIENTS
    return hooks.Reader(method.original, method, ledger, hook, method.is_tracing, warns)


def _wrap(original: Any, kind: str, hub: Hub, torch: Any) -> Any:
    channel = hub.channel("tensor_read")
    begin, end = channel.ends()
    fail = channel.fail

    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        token = 0
        if channel.open:
            try:
                token = begin(kind)
            except Exception as error:
                fail(error)
        if not token:
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                hide_this_frame(error)
                raise
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            hide_this_frame(error)
            raise
        finally:
            try:
                end(token, (kind, device_type(torch, args[0] if args else None)))
            except Exception as error:
                fail(error)

    return read
