"""Our wrappers are no frames to compile: Dynamo passes over them to what they call.

Where the user's code is traced, a wrapper is inlined like any function. But a wrapper that is
entered by compiled code that Dynamo could not trace (a bare ``nn.Sequential`` after ``compile()``)
would be compiled for itself, as a graph that would not be there without us.
"""

from __future__ import annotations

import sys

from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch._dynamo.eval_frame",)
CHANNELS = ("module_call", "backward", "tensor_read")


def install(hub: Hub, patches: Patches) -> None:  # noqa: ARG001 - the signature of a site
    """Mark the code of every wrapper; the marks stay, and mean nothing once it is undone."""
    skip_code = getattr(sys.modules[MODULES[0]], "skip_code", None)
    if skip_code is not None:
        for code in patches.codes():
            skip_code(code)
