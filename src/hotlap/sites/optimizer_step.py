"""Optimizer steps, by torch's own hooks for all optimizers, and ``zero_grad``.

Channels ``optimizer_step``, ``optimizer_call`` and ``zero_grad``: subject = the optimizer. If
``step`` raises, torch calls no post hook: subscribers must bear a ``begin`` without an ``end``.
Around its hooks torch does work of its own (a label for its profiler), which takes up to a
millisecond where the caches are cold: ``optimizer_call`` is all that the script calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hotlap.sites.around import around, first, hide_this_frame
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("optimizer_step", "optimizer_call", "zero_grad")


def install(hub: Hub, patches: Patches) -> None:
    """Register the global pre and post hooks; wrap ``zero_grad`` and each class's ``step``."""
    from torch.optim import optimizer as place

    channel = hub.channel("optimizer_step")
    if channel:
        _install_hooks(channel, place, patches)
    if hub.channel("optimizer_call"):
        _wrap_classes(hub.channel("optimizer_call"), place.Optimizer, patches)
    zeroing = hub.channel("zero_grad")
    if zeroing:
        original = place.Optimizer.zero_grad
        hook = zeroing.hook("zero_grad", original, around(original, zeroing, first))
        patches.set("zero_grad", place.Optimizer, "zero_grad", hook)


def _install_hooks(channel: Any, place: Any, patches: Patches) -> None:
    begin, end = channel.ends()
    fail = channel.fail
    tokens: dict[int, Any] = {}

    def before(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if channel.open:
            try:
                tokens[id(optimizer)] = begin(optimizer)
            except Exception as error:
                fail(error)

    def after(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if channel.open:
            try:
                end(tokens.pop(id(optimizer), 0), optimizer)
            except Exception as error:
                fail(error)

    # A compiled function that steps: Dynamo calls these and warns of nothing (what its own
    # `disable` sets, which would have to be imported).
    for one in (before, after):
        one._torchdynamo_disable = True  # type: ignore[attr-defined]
        one._torchdynamo_disable_msg = "it reads clocks"  # type: ignore[attr-defined]
    pre = place.register_optimizer_step_pre_hook(before)
    patches.later("optimizer_step", pre.remove)
    post = place.register_optimizer_step_post_hook(after)
    patches.later("optimizer_step", post.remove)
    for name, key, kind, wrapper in (
        ("_global_optimizer_pre_hooks", pre.id, "step_begins", before),
        ("_global_optimizer_post_hooks", post.id, "step_ended", after),
    ):
        registered = getattr(place, name, {})
        hook = channel.hook(kind, wrapper, wrapper, tokens)
        if hook is not wrapper and registered.get(key) is wrapper:
            patches.put("optimizer_step", registered, key, hook)


def _wrap_classes(channel: Any, optimizer: Any, patches: Patches) -> None:
    """Wrap the ``step`` of a class when torch has put its own wrapper around it.

    That is when the first optimizer of the class is made; one that was made before us is left.
    """
    own = optimizer._patch_step_function

    @functools.wraps(own)
    def _patch_step_function(self: Any) -> None:
        own(self)
        try:
            owner = next(one for one in type(self).__mro__ if "step" in vars(one))
            if channel.open and not patches.hold(owner, "step"):
                patches.set("optimizer_call", owner, "step", _wrapped(channel, vars(owner)["step"]))
        except Exception as error:
            channel.fail(error)

    patches.set("optimizer_call", optimizer, "_patch_step_function", _patch_step_function)


def _wrapped(channel: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``step``; what Dynamo traces is the original alone. Cost: 2 us."""
    import torch

    # As in ``module_call``.
    is_compiling = getattr(torch.compiler, "is_dynamo_compiling", torch.compiler.is_compiling)
    begin, end = channel.ends()
    fail = channel.fail

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(self, *args, **kwargs)
        token = 0
        if channel.open:
            try:
                token = begin(self)
            except Exception as error:
                fail(error)
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            hide_this_frame(error)
            raise
        finally:
            if token:
                try:
                    end(token, self)
                except Exception as error:
                    fail(error)

    return step
