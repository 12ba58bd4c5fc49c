"""Compiled hooks in the place of wrappers in Python, where this process has them.

Each does the plain case of one watcher itself, with the watchers' own state, and leaves every
other case to the wrapper, which calls the watcher. So whatever a hook does stands in two places:
in ``fast/wrappers.h``, and in the watcher whose method is named here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hotlap.fast.choice import because, hooks
from hotlap.sites.hub import Channel, Hub
from hotlap.sites.tensor_copy import has_device_build

_PAIRED = ("module_call", "backward", "optimizer_step")
"""Where the device's clock has subscribed, too: tokens are pairs then."""

if TYPE_CHECKING:
    from hotlap.probe.optimizers import Optimizers
    from hotlap.probe.recorder import Recorder


def facts(withheld: str | None) -> dict[str, Any]:
    """Return whether compiled hooks are used, and why not. withheld: why they are not to be."""
    absent = because if hooks is None else withheld
    return {"compiled_hooks": absent is None, "compiled_hooks_absent": absent}


def offer(hub: Hub, recorder: Recorder, optimizers: Optimizers) -> None:
    """Offer a hook for each place that a training step passes; called after all subscriptions."""
    if hooks is None:
        return
    torch = sys.modules["torch"]
    # Where there may be a device, only the wrapper can tell on which one a tensor lies.
    remembered = None if has_device_build(torch) else recorder.touches.remembered
    makers = {
        # loaders.batch_begins, batch_ended
        "batch": _maker(recorder),
        # models.forward_begins, forward_ended
        "module_call": _maker(recorder, torch.is_grad_enabled),
        # models.backward_begins, backward_ended
        "backward": _maker(recorder),
        # optimizers.zero_begins, zero_ended
        "zero_grad": _maker(recorder),
        # optimizers.step_begins, step_ended, timeline.tick
        "optimizer_step": _step_maker(recorder, optimizers),
        # fetches.fetch_begins, fetch_ended; collate_begins, collate_ended
        "fetch": _maker(recorder, recorder.fetches),
        "collate": _maker(recorder, recorder.fetches),
        # touches.read_begins, read_ended
        "tensor_read": _maker(recorder, remembered),
    }
    for name, make in makers.items():
        hub.offer(name, make)


def _maker(recorder: Recorder, *own: Any) -> Any:
    """Return a maker of hooks. own: what a hook of that kind needs; the site adds its part."""

    def make(channel: Channel, kind: str, original: Any, wrapper: Any, more: Any) -> Any:
        assert hooks is not None
        return hooks.Hook(
            kind,
            original,
            wrapper,
            recorder.ledger,
            recorder.timeline,
            channel.ends()[1],
            channel.fail,
            recorder.device.usable and channel.name in _PAIRED,
            (*own, *more),
        )

    return make


def _step_maker(recorder: Recorder, optimizers: Optimizers) -> Any:
    def make(channel: Channel, kind: str, original: Any, wrapper: Any, more: Any) -> Any:
        assert hooks is not None
        return hooks.Hook(
            kind,
            original,
            wrapper,
            recorder.ledger,
            recorder.timeline,
            recorder.journal.kept_enough,
            channel.fail,
            recorder.device.usable and channel.name in _PAIRED,
            (optimizers.open, *more, optimizers.ordinal),
        )

    return make
