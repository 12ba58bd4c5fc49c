"""What the trained models hold beside their parameters' values: buffers, names and shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hotlap.inject.conditions import trace_digest as digest

_MOST: Final = 1 << 13
_WRAPPED: Final = "_orig_mod"
"""Where a module that ``torch.compile`` made has the one that it stands for."""


def buffers_of(models: Sequence[Any]) -> dict[str, float]:
    """Return the sum of each buffer, by number of its model and name."""
    found: dict[str, float] = {}
    for number, model in enumerate(_outermost(models)):
        for name, one in model.named_buffers():
            if one is not None and len(found) < _MOST:
                found[f"{number}.{_plain(name)}"] = digest.total_and_norm(one)[0]
    return found


def state_keys(models: Sequence[Any]) -> str | None:
    """Return the hash of names and shapes of parameters and buffers; None where no model is known.

    ``state_dict`` is not called: a model's own may gather what lies on other ranks.
    """
    own = list(_outermost(models))
    if not own:
        return None
    lines = []
    for number, model in enumerate(own):
        for kind in (model.named_parameters, model.named_buffers):
            for name, one in kind():
                lines.append(f"{number}.{_plain(name)} {tuple(one.shape)}")
    return digest.text_hash("\n".join(lines))


def _outermost(models: Sequence[Any]) -> Iterator[Any]:
    """Yield each model once, without those that are a part of another."""
    unwrapped: dict[int, Any] = {}
    for one in models:
        own = one._modules.get(_WRAPPED, one)
        unwrapped[id(own)] = own
    inner = {id(part) for one in unwrapped.values() for part in one.modules() if part is not one}
    yield from (one for key, one in unwrapped.items() if key not in inner)


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part != _WRAPPED)
