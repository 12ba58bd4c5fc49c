"""Optimizer steps, by torch's own hooks for all optimizers, and ``zero_grad``.

Channels ``optimizer_step`` and ``zero_grad``: subject = the optimizer. If ``step`` raises, torch
calls no post hook: subscribers must bear a ``begin`` without an ``end``.
"""

from __future__ import annotations

from typing import Any

from hotlap.sites.around import around, first
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("optimizer_step", "zero_grad")


def install(hub: Hub, patches: Patches) -> None:
    """Register the global pre and post hooks and wrap ``Optimizer.zero_grad``."""
    from torch.optim import optimizer as place

    channel = hub.channel("optimizer_step")
    if channel:
        _install_hooks(channel, place, patches)
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
