"""# zero_grad_to_none: gradients are dropped, not filled with zeros

**What.** `zero_grad(set_to_none=False)` writes zeros into all gradients, and the backward pass adds
to them. Dropped gradients cost neither.

**Where it helps.** Scripts that ask for zeros; dropping is torch's default.

**What else it changes.** Between `zero_grad` and the backward pass `.grad` is None. A parameter
that then gets no gradient is given zeros before the optimizer steps, so updates stay the same.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from hotlap.knobs.offers import is_settled, judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "zero_grad_to_none"
PHASE: Final = "optimizer"
NUMERICS: Final = ("identical",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it where the script asks for zeros."""
    if not is_settled(case.facts, ("set_to_none",), False):
        return No("the script does not ask for zeros, and torch drops gradients by default")
    because = "the script calls zero_grad(set_to_none=False)"
    share = share_of(case.facts, "optimizer", "backward")
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Let ``zero_grad`` drop gradients, or fill them with zeros."""
    torch = sys.modules["torch"]
    wanted = bool(value)
    dropped = _Dropped()
    for owner in (torch.optim.Optimizer, torch.nn.Module):
        own = owner.zero_grad

        def zero_grad(self: Any, set_to_none: bool = True, _own: Callable[..., Any] = own) -> Any:
            if bool(set_to_none) != wanted:
                target.acted(f"called with {set_to_none}, done with {wanted}")
                if wanted:
                    dropped.of(self)
            return _own(self, set_to_none=wanted)

        target.replace(owner, "zero_grad", functools.wraps(own)(zero_grad))
    if wanted:
        register = sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook
        target.undo_with(register(lambda *_: dropped.fill(torch)).remove)


class _Dropped:
    """Parameters whose gradients were dropped though the script asked for zeros."""

    def __init__(self) -> None:
        self._parameters: list[weakref.ref[Any]] = []

    def of(self, owner: Any) -> None:
        """Remember those of an optimizer or module that have a gradient."""
        groups = getattr(owner, "param_groups", None)
        found = (
            owner.parameters() if groups is None else (p for one in groups for p in one["params"])
        )
        self._parameters += [weakref.ref(one) for one in found if one.grad is not None]

    def fill(self, torch: Any) -> None:
        """Give zeros to those that have got no gradient since."""
        parameters, self._parameters = self._parameters, []
        for reference in parameters:
            one = reference()
            if one is not None and one.grad is None:
                one.grad = torch.zeros_like(one)


def snippet(value: Any) -> str:
    """Return the call to have in place of the script's own."""
    return f"optimizer.zero_grad(set_to_none={bool(value)})"
