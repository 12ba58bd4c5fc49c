"""Another argument for optimizers that a script makes or hands over, if their class takes it."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from hotlap.knobs.target import Target


def replace_argument(target: Target, name: str, other: str) -> None:
    """Make each optimizer with ``name`` set to the target's value, and without ``other``.

    One that refuses it (sparse gradients, a device) is made as the script wants it, and the target
    notes why.
    """
    optim = sys.modules["torch"].optim
    found = [one for one in vars(optim).values() if inspect.isclass(one)]
    for owner in dict.fromkeys(found):
        own = vars(owner).get("__init__")
        if own is None or owner is optim.Optimizer:
            continue
        signature = inspect.signature(own)
        if name in signature.parameters:
            wrapped = _with_argument(target, own, signature, (name, other))
            target.replace(owner, "__init__", wrapped)

    def adjust(made: Any) -> None:
        if isinstance(made, optim.Optimizer):
            _adjust(target, made, (name, other))

    target.adjust_with(adjust)


def _with_argument(
    target: Target, own: Callable[..., None], signature: inspect.Signature, names: tuple[str, str]
) -> Callable[..., None]:
    name, other = names

    @functools.wraps(own)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        params = given.arguments.get("params")
        if params is not None and not isinstance(params, (list, tuple, dict)):
            params = given.arguments["params"] = list(params)  # it may be needed twice
        before = {key: given.arguments.get(key) for key in names}
        given.arguments[name] = target.value
        if target.value and other in signature.parameters:
            given.arguments[other] = None
        try:
            own(*given.args, **given.kwargs)
        except (RuntimeError, ValueError) as error:
            target.note(f"{type(self).__name__} refused it: {' '.join(str(error).split())[:200]}")
            for key, value in before.items():
                if key in signature.parameters:
                    given.arguments[key] = value
            own(*given.args, **given.kwargs)
            return
        if bool(before[name]) != bool(target.value):
            target.acted(f"{type(self).__name__} was made with {name}={target.value}")

    return __init__


def _adjust(target: Target, optimizer: Any, names: tuple[str, str]) -> None:
    """Set the argument of an optimizer that was made already, unless it has stepped."""
    kind, kept = type(optimizer), optimizer.defaults
    if not kind.__module__.startswith("torch.optim.") or names[0] not in kept:
        target.note(f"{kind.__name__} has no argument {names[0]} that torch would know")
        return
    if bool(kept[names[0]]) == bool(target.value):
        return
    if optimizer.state:
        target.note(f"{kind.__name__} has made steps already, and was left as it was")
        return
    accepted = inspect.signature(kind).parameters
    # Another one of the same parameters, made as above: torch says whether they can have it.
    other = kind(
        [{"params": list(group["params"])} for group in optimizer.param_groups],
        **{key: value for key, value in kept.items() if key in accepted},
    )
    changed = {key: other.defaults[key] for key in names if key in kept}
    if bool(changed[names[0]]) != bool(target.value):
        return
    extra = {key: value for key, value in vars(other).items() if key not in vars(optimizer)}
    vars(optimizer).update(extra)
    for name in extra:
        target.undo_with(functools.partial(vars(optimizer).pop, name, None))
    for held in (kept, *optimizer.param_groups):
        before = {key: held[key] for key in changed if key in held}
        held.update(changed)
        target.undo_with(functools.partial(held.update, before))
    target.acted(f"{kind.__name__} was set to {names[0]}={target.value}")
