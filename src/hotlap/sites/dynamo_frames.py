"""What Dynamo traces is in Python, and our wrappers are no frames to compile.

Compiled hooks cannot be traced: the first time that Dynamo builds a graph, the wrappers in Python
take their places, for good. Where the user's code is traced, a wrapper is inlined like any
function. But a wrapper that is entered by compiled code that Dynamo could not trace (a bare
``nn.Sequential`` after ``compile()``) would be compiled for itself, as a graph that would not be
there without us: Dynamo passes over them to what they call.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

MODULES = ("torch._dynamo.eval_frame", "torch._dynamo.output_graph")
CHANNELS = ("module_call", "backward", "tensor_read")


def install(hub: Hub, patches: Patches) -> None:  # noqa: ARG001 - the signature of a site
    """Mark the code of every wrapper, and wait for the first graph.

    The marks stay, and mean nothing once it is undone.
    """
    frames, graphs = (sys.modules.get(name) for name in MODULES)
    skip_code = getattr(frames, "skip_code", None)
    if skip_code is not None:
        for code in patches.codes():
            skip_code(code)
    if graphs is None:
        return
    graph = getattr(graphs, "OutputGraph", None)
    if graph is None:
        _to_python(patches)  # another Dynamo: there is no telling when it will trace
    elif not patches.hold(graph, "__init__"):
        _wait_for(graph, patches)


def _wait_for(graph: Any, patches: Patches) -> None:
    original = graph.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            _to_python(patches)
        finally:
            original(self, *args, **kwargs)

    patches.set("dynamo", graph, "__init__", __init__)


def _to_python(patches: Patches) -> None:
    """Put the wrappers in place, also where a hook has been taken down by now.

    So it is by ``from torch.autograd import grad`` in the user's module, and by Dynamo's tables.
    """
    hooks = patches.to_python()
    patches.undo("dynamo")
    if not hooks:
        return
    for name, module in list(sys.modules.items()):
        if type(module) is ModuleType:
            names = vars(module)
            _replace(names, hooks)
            if name.startswith("torch._dynamo."):
                for table in list(names.values()):
                    if type(table) is dict:
                        _replace(table, hooks)
    # What torch.jit makes of a function it has noted by the function's id.
    builtins = getattr(sys.modules.get("torch.jit._builtins"), "_builtin_table", None) or {}
    for hook, wrapper in hooks.values():
        if id(hook) in builtins:
            builtins[id(wrapper)] = builtins[id(hook)]


def _replace(names: dict[Any, Any], hooks: dict[int, tuple[Any, Any]]) -> None:
    found = [(key, id(value)) for key, value in names.items() if id(value) in hooks]
    for key, hook in found:
        names[key] = hooks[hook][1]
