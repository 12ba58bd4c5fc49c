"""# channels_last: pictures lie in memory with their channels side by side

**What.** Weights of convolutions and the pictures that come in get the memory format
`torch.channels_last`, in which most convolution kernels work. Shapes and values stay the same.

**Where it helps.** Convolutional nets. A model that looks at the order in memory (`.view` on a
picture) cannot take it: its first forward pass is then made again as before, and the knob says so.

**What else it changes.** The last bits of sums.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from hotlap.knobs.offers import judged, no_variables
from hotlap.knobs.outermost import mapped, replace_outermost, trains
from hotlap.knobs.target import Target
from hotlap.values.facts import Facts, Measured
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "channels_last"
PHASE: Final = "forward"
NUMERICS: Final = ("rounding",)
environment = no_variables
_LEAST_PART: Final = 0.2
_LEAST_LAYERS: Final = 2


def applies(case: Case) -> Offer | No:
    """Offer it where convolutions of pictures take a part of the model's time."""
    part = convolutions(case.facts)
    if part is None:
        return No("whether the model has convolutions is not known: operators were not profiled")
    if part < _LEAST_PART:
        return No(f"convolutions are {part * 100:.0f} % of the model's time")
    if any(one.value == "channels_last" for one in case.facts.settings):
        return No("the script has set it already")
    share = share_of(case.facts, "forward", "backward")
    because = f"convolutions are {part * 100:.0f} % of the model's time"
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def convolutions(facts: Facts) -> float | None:
    """Return the part (0-1) of convolutions of pictures in the operators' time; None unknown."""
    if not isinstance(facts.operators, Measured):
        return None
    whole = sum(one.ns for one in facts.operators.value)
    named = sum(
        one.ns for one in facts.operators.value if "conv" in one.name and "conv1d" not in one.name
    )
    return named / whole if whole else None


def apply(target: Target, value: Any) -> None:
    """Convert each convolutional model at its first call, and the pictures at every one."""
    if value:
        replace_outermost(target, _Models(target).call)


class _Models:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._converted: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()

    def call(
        self, module: Any, own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        known = self._converted.get(module)
        if known is None and not trains(module):
            return own(module, *args, **kwargs)
        if known is None:
            known = self._fits(module, args, kwargs)
            self._converted[module] = known
            if known:
                return self._first(module, own, args, kwargs)
        if not known:
            return own(module, *args, **kwargs)
        return own(module, *mapped(_laid_out, args), **mapped(_laid_out, dict(kwargs)))

    def _fits(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        torch = sys.modules["torch"]
        name = type(module).__name__
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            self._target.note(f"{name} has made its buckets already")
            return False
        layers = [one for one in module.modules() if isinstance(one, torch.nn.Conv2d)]
        held = {id(one.weight) for one in layers}
        others = [one for one in module.parameters() if one.dim() == 4 and id(one) not in held]
        pictures = [one for one in (*args, *kwargs.values()) if _is_picture(one)]
        if len(layers) < _LEAST_LAYERS or others or not pictures:
            self._target.note(f"{name} is no net of convolutions over pictures")
            return False
        return True

    def _first(
        self, module: Any, own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Make the first call; where it fails, all is as it was and it is made again."""
        torch = sys.modules["torch"]
        draws = torch.get_rng_state()
        buffers = [(one, one.detach().clone()) for one in module.buffers()]
        module.to(memory_format=torch.channels_last)
        try:
            result = own(module, *mapped(_laid_out, args), **mapped(_laid_out, dict(kwargs)))
        except RuntimeError as error:
            self._converted[module] = False
            _back(module)
            torch.set_rng_state(draws)
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            words = " ".join(str(error).split())[:150]
            self._target.note(f"{type(module).__name__} cannot take it: {words}")
            return own(module, *args, **kwargs)
        held = weakref.ref(module)
        self._target.undo_with(lambda: _back(held()))
        self._target.acted(f"{type(module).__name__} and its pictures were laid out anew")
        return result


def _is_picture(value: Any) -> bool:
    torch = sys.modules["torch"]
    return isinstance(value, torch.Tensor) and value.dim() == 4 and value.is_floating_point()


def _laid_out(tensor: Any) -> Any:
    if not _is_picture(tensor):
        return tensor
    return tensor.contiguous(memory_format=sys.modules["torch"].channels_last)


def _back(module: Any) -> None:
    if module is not None:
        module.to(memory_format=sys.modules["torch"].contiguous_format)


def snippet(_value: Any) -> str:
    """Return the lines to paste: one where the model is made, one in the step."""
    return (
        "model = model.to(memory_format=torch.channels_last)\n"
        "x = x.to(memory_format=torch.channels_last)"
    )
