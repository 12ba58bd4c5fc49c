"""Conditions for comparing trainings: another seed, and parameters that are off by a little."""

from __future__ import annotations

import functools
import random
import sys
from typing import Any

from hotlap.knobs.target import Target


def seed(target: Target) -> None:
    """Seed torch, ``random`` and numpy at once; what the script seeds later wins."""
    value = int(target.value)
    sys.modules["torch"].manual_seed(value)
    random.seed(value)
    seeded = ["torch", "random"]
    numpy = sys.modules.get("numpy")  # torch itself imports it where it is there
    if numpy is not None:
        numpy.random.seed(value)
        seeded.append("numpy")
    target.acted(f"{', '.join(seeded)} were seeded with {value}")


def perturb(target: Target) -> None:
    """Scale each value of each parameter by ``1 + value * normal`` when an optimizer gets it.

    The draws are a private generator's. Nothing is changed once the first step has ended.
    """
    torch = sys.modules["torch"]
    own = torch.optim.Optimizer.add_param_group
    done: set[int] = set()
    is_open = [True]

    @functools.wraps(own)
    def add_param_group(self: Any, param_group: dict[str, Any]) -> None:
        own(self, param_group)
        if not is_open[0]:
            return
        try:
            for one in self.param_groups[-1]["params"]:
                if id(one) not in done and one.is_floating_point():
                    done.add(id(one))
                    _shift(torch, one, float(target.value), len(done))
                    target.acted(f"{len(done)} parameters are off by {target.value:g}, relatively")
        except Exception as error:
            is_open[0] = False
            target.note(f"not all parameters were perturbed: {type(error).__name__}: {error}"[:300])

    target.replace(torch.optim.Optimizer, "add_param_group", add_param_group)
    target.after_first_step(lambda: is_open.__setitem__(0, False))


def _shift(torch: Any, parameter: Any, epsilon: float, nth: int) -> None:
    generator = torch.Generator().manual_seed(nth)
    with torch.no_grad():
        drawn = torch.randn(
            tuple(parameter.shape), generator=generator, dtype=torch.float32, device="cpu"
        )
        parameter.mul_((1 + epsilon * drawn).to(device=parameter.device, dtype=parameter.dtype))
