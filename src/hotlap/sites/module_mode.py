"""Changes between training and evaluation mode: the outermost ``nn.Module.train(mode)``.

Channel ``module_mode``: subject = (module, mode), fired at the beginning of the change.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from hotlap.sites.around import hide_this_frame
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch",)
CHANNELS = ("module_mode",)


class _Depth(threading.local):
    inside = False


def install(hub: Hub, patches: Patches) -> None:
    """Wrap ``nn.Module.train``, which ``eval`` calls too."""
    import torch

    channel = hub.channel("module_mode")
    begin, _ = channel.ends()
    fail = channel.fail
    original = torch.nn.Module.train
    is_compiling = torch.compiler.is_compiling
    depth = _Depth()

    @functools.wraps(original)
    def train(self: Any, mode: bool = True) -> Any:
        if is_compiling():
            return original(self, mode)
        if depth.inside:
            try:
                return original(self, mode)
            except BaseException as error:
                hide_this_frame(error)
                raise
        depth.inside = True
        try:
            begin((self, mode))
        except Exception as error:
            fail(error)
        try:
            return original(self, mode)
        except BaseException as error:
            hide_this_frame(error)
            raise
        finally:
            depth.inside = False

    patches.set("module_mode", torch.nn.Module, "train", train)
