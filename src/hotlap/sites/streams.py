"""Writes to stdout and stderr (``print``, progress bars), and ``logging`` handlers.

The stream objects stay the user's own: only their ``write`` and ``flush`` are shadowed by
attributes of the instance, which ``print`` and tqdm look up at each call. A pipe or terminal whose
reader is slow is waited for in ``flush``. Channel ``write``: subject = the kind.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from hotlap.sites.around import around
from hotlap.sites.hub import Channel, Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("write",)


def install(hub: Hub, patches: Patches) -> None:
    """Shadow the methods of the two standard streams and wrap ``logging.Handler.handle``."""
    channel = hub.channel("write")
    for kind in ("stdout", "stderr"):
        stream = getattr(sys, kind)
        if stream is not None and _takes_attributes(stream):
            _shadow(stream, kind, channel, patches)
    handle: Any = around(logging.Handler.handle, channel, _constant("logging"))
    # When a handler fails, logging shows the stack from the first file that is not its own.
    handle.__code__ = handle.__code__.replace(co_filename=logging.__file__)
    patches.set("write", logging.Handler, "handle", handle)


def _shadow(stream: Any, kind: str, channel: Channel, patches: Patches) -> None:
    for name, said in (("write", kind), ("flush", f"{kind} flush")):
        try:
            patches.set(
                "write", stream, name, around(getattr(stream, name), channel, _constant(said))
            )
        except (AttributeError, TypeError):
            return  # a stream of the user's own making that takes no attributes


def _takes_attributes(stream: Any) -> bool:
    """Tell whether an attribute that is set on a stream is its own.

    A stand-in of the user's may hand it on to the stream below, which would then call itself.
    """
    setter: Any = type(stream).__setattr__
    return setter is object.__setattr__ and isinstance(getattr(stream, "__dict__", None), dict)


def _constant(kind: str) -> Any:
    def pick(args: tuple[Any, ...]) -> tuple[str, int | None]:
        text = args[-1] if args else None
        return kind, len(text) if isinstance(text, str) else None

    return pick
