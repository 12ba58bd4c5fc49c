"""The clock and the log that the training scripts beside this file share.

A script calls `lap(phase)` after each statement that it clocks: the time since the lap before is
booked on that phase of the step that is open, so spans are exclusive by construction, also when a
closure runs inside an optimizer. `end_step()` closes the step at the instant of the last lap.
Phases of the run (`evaluation`, `checkpoint`, `epoch_edge`, `set_up`) are booked on the run and
taken out of the step (`carved_ns`). Before the first batch is asked for they belong to start-up
and are kept apart, in `before_first_step`. All instants are `time.perf_counter_ns()`, which is
CLOCK_MONOTONIC on Linux and so comparable between processes.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

RUN_PHASES = ("evaluation", "checkpoint", "epoch_edge", "set_up")
clock_ns = time.perf_counter_ns


def arguments(doc: str | None, **plants_ms: float) -> argparse.ArgumentParser:
    """Make a parser with `--log` (or `--record`), `--plant` and `--out`.

    Args:
        doc: the script's docstring, shown by `--help`.
        plants_ms: the delays that the script can plant, with their default in milliseconds.

    Returns:
        The parser; a script adds options of its own. `args.plant` is a dict of milliseconds.
    """
    parser = argparse.ArgumentParser(description=doc)
    # torchrun takes a script's --log for an abbreviation of its own options; hence the second name.
    parser.add_argument("--log", "--record", help="write what the script clocked to this JSON file")
    parser.add_argument("--out", help="folder for checkpoints and logs (default: a temporary one)")
    shown = ",".join(f"{name}={ms}" for name, ms in plants_ms.items())
    parser.add_argument(
        "--plant",
        type=_plants(plants_ms),
        default=dict(plants_ms),
        metavar="NAME=MS,...",
        help=f"planted delays in milliseconds (default: {shown})",
    )
    return parser


def _plants(defaults: dict[str, float]) -> Callable[[str], dict[str, float]]:
    def parse(text: str) -> dict[str, float]:
        plants = dict(defaults)
        for part in filter(None, text.split(",")):
            name, _, ms = part.partition("=")
            if name not in plants:
                known = ", ".join(plants)
                raise argparse.ArgumentTypeError(f"no plant {name!r}; this script has: {known}")
            plants[name] = float(ms)
        return plants

    return parse


def folder(out: str | None) -> str:
    """Return `out`, made if need be, or a temporary folder that is removed at exit."""
    if out is not None:
        os.makedirs(out, exist_ok=True)
        return out
    made = tempfile.mkdtemp(prefix="script-")
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(made, ignore_errors=True))
    return made


def digest(parameters: Iterable[Any]) -> str:
    """Return the SHA-256 of the bytes of all tensors, in order."""
    found = hashlib.sha256()
    for tensor in parameters:
        found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


class Log:
    """What one training did and when."""

    def __init__(self, style: str, path: str | None) -> None:
        self.style = style
        self.path = path
        self.steps: list[dict[str, Any]] = []
        self.spans: list[tuple[str, int, int]] = []
        self.before_first_step: dict[str, int] = {}
        self.optimizer_ends: list[tuple[str, int]] = []
        self.last = self.begin = clock_ns()
        self.open: dict[str, int] = {}
        self.carved = 0

    def lap(self, phase: str) -> None:
        """Book the time since the last lap on `phase`."""
        now = clock_ns()
        spent = now - self.last
        if phase not in RUN_PHASES:
            self.open[phase] = self.open.get(phase, 0) + spent
        elif self.steps or self.open:
            self.spans.append((phase, self.last, now))
            self.carved += spent
        else:
            self.before_first_step[phase] = self.before_first_step.get(phase, 0) + spent
            self.begin = now
        self.last = now

    def start(self) -> None:
        """Forget the time up to now: what came before is neither a step nor a run phase."""
        self.last = clock_ns()
        if not self.open and not self.carved:
            self.begin = self.last

    def stepped(self, name: str) -> None:
        """Note that the optimizer `name` has returned from `step()` at the last lap."""
        self.optimizer_ends.append((name, self.last))

    def end_step(self, **facts: Any) -> None:
        """Close the open step at the last lap; what follows belongs to the next one."""
        step = {"begin_ns": self.begin, "end_ns": self.last, "carved_ns": self.carved}
        self.steps.append({**step, **self.open, **facts})
        self.begin, self.open, self.carved = self.last, {}, 0

    def _run(self) -> dict[str, Any]:
        totals: dict[str, Any] = {}
        for phase in RUN_PHASES:
            spent = [end - begin for name, begin, end in self.spans if name == phase]
            totals[f"{phase}_ns"] = sum(spent) if spent else None
        if self.steps:
            totals["first_step_begin_ns"] = self.steps[0]["begin_ns"]
            totals["last_step_end_ns"] = self.steps[-1]["end_ns"]
        totals["spans"] = self.spans
        totals["before_first_step"] = self.before_first_step
        totals["after_last_step"] = self.open
        return totals

    def finish(
        self,
        parameters: Iterable[Any],
        losses: list[float],
        *,
        workers: dict[str, Any] | None = None,
        **facts: Any,
    ) -> None:
        """Write the log, whole or not at all.

        Args:
            parameters: tensors whose bytes tell one training's result from another's.
            losses: one number for each batch or step.
            workers: what is planted in the loader, in nanoseconds per batch.
            facts: further facts; they may overrule the counts that are derived from the steps.
        """
        content = {
            "style": self.style,
            "pid": os.getpid(),
            "steps": self.steps,
            "run": self._run(),
            "optimizer_steps": len(self.steps),
            "batches": len(self.steps),
            "expected_steps": len(self.steps),
            "optimizer_ends": self.optimizer_ends,
            "workers": workers,
            "weights_sha256": digest(parameters),
            "losses": losses,
            **facts,
        }
        if self.path is None:
            return
        with open(f"{self.path}.part", "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(f"{self.path}.part", self.path)
