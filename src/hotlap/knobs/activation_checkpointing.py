"""# activation_checkpointing: activations are kept, not computed again

**What.** `torch.utils.checkpoint` drops activations and computes them again in the backward pass.
With this knob they are kept: a checkpointed part runs once per step.

`torch.utils.checkpoint.checkpoint` looks up what does the work by name, so a script (or a library)
that holds a reference to `checkpoint` itself gets the change as well. Where a torch has other names
there, the knob says so and does not act.

**Where it helps.** Where a forward pass is computed twice and memory is left.

**What else it changes.** Memory: activations stay in it until the backward pass. Layers that count
their own passes (running statistics of a BatchNorm) count each once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from hotlap.knobs.offers import best_trial, judged, named_by, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "activation_checkpointing"
PHASE: Final = "backward"
NUMERICS: Final = ("identical",)
environment = no_variables
_SETTINGS: Final = ("activation_checkpoint", "gradient_checkpointing")
_GENERATOR: Final = "_checkpoint_without_reentrant_generator"


def applies(case: Case) -> Offer | No:
    """Offer it where the script asks for recomputation, or a finding says that it happens."""
    asked = any(
        one.name in _SETTINGS and one.value not in (False, None, "False")
        for one in case.facts.settings
    )
    known = named_by(case, NAME) or best_trial(case.facts, NAME)
    if not asked and known is None:
        return No("no activation is computed again")
    because = "activations are dropped and computed again"
    share = share_of(case.facts, "backward")
    return judged(case, NAME, share, Offer((False,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Keep activations where the script asks that they be computed again (value ``False``)."""
    if value:
        target.note("it can only be switched off")
        return
    module = importlib.import_module("torch.utils.checkpoint")
    words = "checkpointed calls ran once and kept their activations"

    class Plain:
        """In the place of the autograd function of the older kind (``use_reentrant=True``)."""

        @staticmethod
        def apply(function: Callable[..., Any], _preserve: bool, *args: Any) -> Any:
            target.acted(words)
            return function(*args)

    def plain(*_args: Any, **_kwargs: Any) -> Iterator[None]:
        target.acted(words)
        yield

    if not all(hasattr(module, name) for name in ("CheckpointFunction", _GENERATOR)):
        target.note("this torch does its checkpointing in another way")
        return
    target.replace(module, "CheckpointFunction", Plain)
    target.replace(module, _GENERATOR, plain)


def snippet(_value: Any) -> str:
    """Return the call to have in place of the checkpointed one."""
    return "out = block(x)  # in place of checkpoint(block, x)"
