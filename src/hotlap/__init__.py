"""hotlap: find out why a PyTorch training script is slow, and prove it.

The names of ``__all__`` are the public API; they are loaded when they are asked for, since this
package is also imported inside the training process, where each module costs start-up time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotlap.api import Measurement, measure, phase, prepare, step, unprepare

__version__ = "0.1.0"
__all__ = ["Measurement", "__version__", "measure", "phase", "prepare", "step", "unprepare"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from hotlap import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
