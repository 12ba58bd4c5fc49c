"""Copies between devices: ``Tensor.to``, ``.cuda`` and ``.copy_``.

Channel ``tensor_copy``: begin's subject = None; end's subject = a ``Move``, or None when the call
moved nothing from one device to another (a change of type, or already there).
It is heard of by calls that raise, too. A tensor subclass with ``__torch_function__`` comes
through twice, once inside the other. ``.to`` of a module ends here once per parameter.
Not installed on a build of torch that knows no device but the host: nothing can move there.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from hotlap.sites.around import hide_this_frame
from hotlap.sites.hub import Channel, Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("tensor_copy",)


class Move(NamedTuple):
    """A copy from one device to another.

    source, target: types of the devices (``cpu``, ``cuda``). pinned: whether the host's side lies
    in pinned memory; None between two devices, and where it cannot be asked. non_blocking: as the
    call said. size_bytes: of what was read; None when the tensor is not one plain block.
    """

    source: str
    target: str
    pinned: bool | None
    non_blocking: bool
    size_bytes: int | None


def has_device_build(torch: Any) -> bool:
    """Tell whether this build of torch can use an accelerator, without initialising one."""
    return bool(
        torch.version.cuda
        or torch.version.hip
        or getattr(torch.version, "xpu", None)
        or torch.backends.mps.is_built()
    )


def install(hub: Hub, patches: Patches) -> None:
    """Wrap the copying methods of ``torch.Tensor``. Cost: 0.5 us a call, 5 us where it moves."""
    import torch

    if not has_device_build(torch):
        return
    channel = hub.channel("tensor_copy")
    for name in ("to", "cuda"):
        wrapped = _wrap(getattr(torch.Tensor, name), channel, torch, into=False)
        patches.set("tensor_copy", torch.Tensor, name, wrapped)
    copying = _wrap(torch.Tensor.copy_, channel, torch, into=True)
    patches.set("tensor_copy", torch.Tensor, "copy_", copying)


def _wrap(original: Any, channel: Channel, torch: Any, into: bool) -> Any:
    begin, end = channel.ends()
    fail = channel.fail
    is_compiling = torch.compiler.is_compiling

    @functools.wraps(original)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(self, *args, **kwargs)
        token = 0
        if channel.open:
            try:
                token = begin(None)
            except Exception as error:
                fail(error)
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            hide_this_frame(error)
            if token:
                try:
                    end(token, None)
                except Exception as ours:
                    fail(ours)
            raise
        if token:
            try:
                # `a.copy_(b)` moves b into a; `a.to(device)` moves a into the result.
                source = (args[0] if args else kwargs.get("other")) if into else self
                end(token, move(torch, source, result, args, kwargs))
            except Exception as error:
                fail(error)
        return result

    return copy


def move(
    torch: Any, source: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Move | None:
    """Tell what a call moved from device to device; None if nothing.

    args, kwargs: of the call, without ``self``. Asks nothing that a user's tensor subclass or
    function mode could notice.
    """
    tensor = torch.Tensor
    if source is result or not (isinstance(source, tensor) and isinstance(result, tensor)):
        return None
    with torch._C.DisableTorchFunction():
        here, there = source.device, result.device
        if here == there or "meta" in (here.type, there.type) or _is_fake(source, result):
            return None
        return Move(
            source=here.type,
            target=there.type,
            pinned=_is_pinned(torch, source, result),
            non_blocking=_non_blocking(args, kwargs),
            size_bytes=_size_bytes(torch, source),
        )


def device_type(torch: Any, value: Any) -> str | None:
    """Return the type of the device that a tensor lies on, unnoticed; None for anything else."""
    if not isinstance(value, torch.Tensor):
        return None
    with torch._C.DisableTorchFunction():
        return str(value.device.type)


def _is_fake(*tensors: Any) -> bool:
    # The compiler's stand-ins: they have a device, but no bytes. Known by name, since importing
    # their class would load modules that the script does not use.
    return any("FakeTensor" in (base.__name__ for base in type(t).__mro__) for t in tensors)


def _is_pinned(torch: Any, source: Any, result: Any) -> bool | None:
    hosts = [one for one in (source, result) if one.device.type == "cpu"]
    if (
        not hosts
        or hosts[0].layout != torch.strided
        or hasattr(type(hosts[0]), "__tensor_flatten__")
    ):
        return None
    if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        return None  # while a graph is captured, nothing may be asked of the device
    return bool(hosts[0].is_pinned())


def _non_blocking(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether the call asked not to wait: by name, or by its first positional bool."""
    if "non_blocking" in kwargs:
        return bool(kwargs["non_blocking"])
    return next((one for one in args if isinstance(one, bool)), False)


def _size_bytes(torch: Any, source: Any) -> int | None:
    if source.layout != torch.strided or hasattr(type(source), "__tensor_flatten__"):
        return None
    return int(source.numel()) * int(source.element_size())
