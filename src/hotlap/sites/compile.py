"""Compilation by ``torch.compile``, told by Dynamo's own callbacks.

Channel ``compile``: subject = None. Installed when Dynamo is imported, never before.
"""

from __future__ import annotations

import sys
from typing import Any

from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch._dynamo.callback",)
CHANNELS = ("compile",)


def install(hub: Hub, patches: Patches) -> None:
    """Register a start and an end callback; an older Dynamo without them is left alone."""
    handler = getattr(sys.modules[MODULES[0]], "callback_handler", None)
    if handler is None:
        return
    channel = hub.channel("compile")
    begin, end = channel.ends()
    tokens: list[Any] = []

    def started(*_: Any) -> None:
        if channel.open:
            try:
                tokens.append(begin(None))
            except Exception as error:
                channel.fail(error)

    def ended(*_: Any) -> None:
        if channel.open and tokens:
            try:
                end(tokens.pop(), None)
            except Exception as error:
                channel.fail(error)

    handler.register_start_callback(started)
    patches.later("compile", lambda: handler.remove_start_callback(started))
    handler.register_end_callback(ended)
    patches.later("compile", lambda: handler.remove_end_callback(ended))
