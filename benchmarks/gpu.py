"""What each knob for a GPU brings on a small convolutional net and a small transformer.

    python -m benchmarks gpu

Both trainings run in this process: as they are and under a knob, in turn (A B B A …), each for some
steps between two events of the device, after steps to warm up. What compiling takes is told apart.
Under eight minutes. Where there is no CUDA device, nothing is measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.intervals import Interval, median_interval
from benchmarks.surroundings import keep, table

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
KNOBS: Final[Mapping[str, Mapping[str, Any]]] = {
    "matmul_precision = high (TF32)": {"matmul_precision": "high"},
    "autocast = bfloat16": {"autocast": "bfloat16"},
    "channels_last": {"channels_last": True},
    "cudnn_benchmark": {"cudnn_benchmark": True},
    "fused_optimizer": {"fused_optimizer": True},
    "pinned_memory": {"pinned_memory": True},
    "compile = default": {"compile": "default"},
    "all of these": {
        "autocast": "bfloat16",
        "channels_last": True,
        "cudnn_benchmark": True,
        "fused_optimizer": True,
        "pinned_memory": True,
        "compile": "default",
    },
}
ROUNDS: Final = 3
STEPS: Final = 30
_WARM_UP: Final = 10
_AGAIN: Final = 5


def run(quick: bool, device: str = "cuda") -> None:
    """Measure, print and keep. device: `cpu` only shows that the benchmark itself runs."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        print("\n  gpu: there is no CUDA device here; not run")
        return
    sys.path.insert(0, str(TESTS))
    from gpu.trainings import KINDS

    rounds, steps = (1, 5) if quick else (ROUNDS, STEPS)
    rows = []
    for kind in KINDS:
        for name, settings in KNOBS.items():
            row = _compared(kind, device, settings, rounds, steps)
            rows.append({"model": kind, "knob": name, **row})
    name = torch.cuda.get_device_name() if device == "cuda" else device
    keep("gpu", {"device": name, "cuda": torch.version.cuda, "rows": rows})
    table(
        f"Knobs on {name}, times as fast",
        ("model", "knob", "gain", "first step", "acted"),
        [
            (
                one["model"],
                one["knob"],
                f"{one['mid']:.2f} ({one['low']:.2f} to {one['high']:.2f})",
                f"{one['first_s']:.1f} s",
                "; ".join(one["proofs"]),
            )
            for one in rows
        ],
    )


def _compared(
    kind: str, device: str, settings: Mapping[str, Any], rounds: int, steps: int
) -> dict[str, Any]:
    """Return what a knob brings: the ratio of neighbouring stretches, without it by with it."""
    plain, tuned = _Arm(kind, device, {}), _Arm(kind, device, settings)
    ratios = []
    for nth in range(2 * rounds):
        first, second = (plain, tuned) if nth % 2 == 0 else (tuned, plain)
        spent = {id(one): one.spent_s(steps) for one in (first, second)}
        ratios.append(spent[id(plain)] / spent[id(tuned)])
    found: Interval = median_interval(ratios)
    return {
        "low": found.low,
        "mid": found.mid,
        "high": found.high,
        "first_s": tuned.first_s,
        "proofs": tuned.proofs,
    }


class _Arm:
    """One training with its knobs, which are on while it makes steps, and off otherwise."""

    def __init__(self, kind: str, device: str, settings: Mapping[str, Any]) -> None:
        from gpu.trainings import Training

        self._device = device
        self._settings = settings
        self.first_s = 0.0
        self.proofs: list[str] = []
        with self._on():
            self._training = Training(kind, device)
            begun = time.perf_counter()
            self._training.losses(1)
            self.first_s = time.perf_counter() - begun
            self._training.losses(_WARM_UP)

    def spent_s(self, steps: int) -> float:
        """Return the time of so many steps, by the device's own clock where it has one."""
        with self._on():
            self._training.losses(_AGAIN)  # what it compiled is made again, of what is cached
            return self._clocked(steps)

    def _clocked(self, steps: int) -> float:
        import torch

        if self._device != "cuda":
            begun = time.perf_counter()
            self._training.losses(steps)
            return time.perf_counter() - begun
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(steps):
            self._training.step()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000

    def _on(self) -> _Knobs:
        return _Knobs(self._settings, self.proofs)


class _Knobs:
    """Puts knobs on for a while. proofs: what acted, filled when they are taken off."""

    def __init__(self, settings: Mapping[str, Any], proofs: list[str]) -> None:
        from hotlap.sites.patches import Patches

        self._settings = settings
        self._proofs = proofs
        self._patches = Patches()
        self._targets: list[Any] = []

    def __enter__(self) -> None:
        from hotlap.knobs import catalogue
        from hotlap.knobs.target import Target

        for name in sorted(self._settings, key=catalogue.KNOBS.index):
            target = Target(name, self._settings[name], self._patches)
            self._targets.append(target)
            catalogue.load(name).apply(target, self._settings[name])

    def __exit__(self, *_: object) -> None:
        for target in self._targets:
            if target.proof()["acted"] and target.name not in self._proofs:
                self._proofs.append(target.name)
        self._patches.undo()
