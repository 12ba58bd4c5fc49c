"""Why there are no times of the device, in the words that a report shows."""

from __future__ import annotations

from typing import Final

NO_BUILD: Final = "this build of torch has neither CUDA nor HIP, whose events hotlap reads"
TOO_SHORT: Final = "no step was sampled: the run ended, or no phase was seen, after the warm-up"
NOT_USED: Final = "the process did not use CUDA"
ON_CPU: Final = "the model lies on the CPU"
UNKNOWN: Final = "no model or optimizer was seen that says which device it is on"
SEVERAL: Final = "the model lies on several devices, and one stream tells only a part"
CAPTURING: Final = "a CUDA graph was being captured in the steps that were to be sampled"
STREAMS: Final = "the phases of a step ran on different streams"
EVALUATED: Final = "evaluation or another part of the run fell into each sampled step"
NESTED: Final = "steps end inside a phase or without one, so none could be told from the next"
TOO_MANY: Final = "a step has too many beginnings and ends of phases"
BEHIND: Final = "the device has not come to the end of any sampled step yet"
