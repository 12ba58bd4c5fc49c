"""Records what a training does in its first steps, so that another can be held against it.

It only looks: it draws from no generator of the script's and changes no tensor. Each rank writes
its own. A failure of ours ends the recording, never the training.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import Any, Final

from hotlap.inject.conditions import trace_digest as digest
from hotlap.inject.conditions.deliveries import known_of
from hotlap.inject.conditions.trace_batches import Delivered
from hotlap.inject.conditions.trace_models import buffers_of, state_keys
from hotlap.probe.recorder import Recorder
from hotlap.runs import frames
from hotlap.sites.hub import Hub, nothing_began
from hotlap.values.trace import GradientTrace, ParameterTrace, StepTrace, TrainingTrace
from hotlap.values.trial import TrialPlan

_NS: Final = 1_000_000_000
_CHUNK: Final = 64
"""Losses that are kept as tensors before they are read."""
_MOST_PARAMETERS: Final = 1 << 13
_EARLY_STEPS: Final = 3
_NOT_NUMERICS: Final = frozenset(
    (
        "params",
        "lr",
        "foreach",
        "fused",
        "capturable",
        "differentiable",
        "initial_lr",
        "param_names",
    )
)
"""Of a group of parameters: what is told elsewhere, or says only how the same is computed."""


class Trace:
    """The recording in one process; does nothing where the plan asks for none.

    models: returns the modules that are trained.
    """

    def __init__(
        self, recorder: Recorder, plan: TrialPlan, models: Callable[[], Sequence[Any]]
    ) -> None:
        self._recorder = recorder
        self._plan = plan
        self._models = models
        self.start_over()

    def start_over(self) -> None:
        """Begin anew: a forked child that trains is a training of its own."""
        self._is_on = self._plan.trace is not None
        self._batches = Delivered()
        # Held, as what a function of the script's holds is gone at the end of the process.
        self._optimizers: dict[int, tuple[Any, int]] = {}
        self._held: Sequence[Any] = ()
        self._before: dict[tuple[int, int], tuple[float, float, bytes]] = {}
        self._waiting: list[Any] = []
        self._losses: list[float] = []
        self._steps: list[StepTrace] = []
        self._texts: dict[str, int] = {}
        self._gradients: list[GradientTrace] = []
        self._parameters: tuple[ParameterTrace, ...] = ()
        self._early: dict[str, float] = {}
        self._rng_first: dict[str, str] = {}
        self._backwards = self._ended = 0
        self._first_ns = 0

    def attach(self, hub: Hub) -> None:
        """Subscribe to the sites where it shows."""
        if self._is_on:
            hub.subscribe("backward", self._backward)
            hub.subscribe("optimizer_step", self._step_begins, self._step_ended)
            hub.subscribe("loader_iter", nothing_began, self._iterated)
            hub.subscribe("exhausted", self._exhausted)

    # -- what is seen ----------------------------------------------------------------------------

    def delivered(self, iterator: Any, batch: Any) -> None:
        """A loader has given a batch to the script."""
        known = known_of(iterator) if self._is_on else None
        if known is not None:
            self._safely(lambda: self._batches.delivered(known, batch, self._ended > 0))

    def _iterated(self, _token: Any, subject: Any) -> None:
        known = self._recorder.loaders.known(subject[0])
        if known is not None:
            self._batches.begun(known)

    def _exhausted(self, iterator: Any) -> int:
        known = known_of(iterator)
        if self._is_on and known is not None:
            self._batches.exhausted(known)
        return 0

    def _backward(self, subject: Any) -> int:
        if self._is_on and self._recorder.ledger.mine():
            self._safely(lambda: self._take_loss(subject))
        return 0

    def _take_loss(self, subject: Any) -> None:
        torch = sys.modules["torch"]
        self._backwards += 1
        tensors = subject if isinstance(subject, (list, tuple)) else (subject,)
        with torch.no_grad():
            self._waiting += [
                one.detach().clone() if one.numel() == 1 else one.detach().sum()
                for one in tensors
                if isinstance(one, torch.Tensor)
            ]
        if len(self._waiting) >= _CHUNK:
            self._read_losses()

    def _read_losses(self) -> None:
        self._losses += [float(one.real) for one in self._waiting]
        self._waiting.clear()

    def _step_begins(self, optimizer: Any) -> int:
        if not self._is_on or not self._recorder.ledger.mine():
            return 0
        if self._ordinal(optimizer) is None:
            self._safely(lambda: self._first_step_of(optimizer))
        return 1

    def _ordinal(self, optimizer: Any) -> int | None:
        return self._optimizers.get(id(optimizer), (None, None))[1]

    def _first_step_of(self, optimizer: Any) -> None:
        ordinal = len(self._optimizers)
        self._optimizers[id(optimizer)] = optimizer, ordinal
        own = _parameters(optimizer)
        for index, parameter in enumerate(own):
            self._before[ordinal, index] = digest.fingerprint(parameter)
        gradients = [one.grad for one in own]
        if any(one is not None for one in gradients):
            norms, projected = digest.sketch(gradients)
            self._gradients.append(GradientTrace(ordinal, tuple(norms), tuple(projected)))

    def _step_ended(self, _token: Any, optimizer: Any) -> None:
        if self._is_on:
            self._safely(lambda: self._take_step(optimizer))

    def _take_step(self, optimizer: Any) -> None:
        ordinal = self._ordinal(optimizer)
        if ordinal is None:
            return
        text = json.dumps(_hyperparameters(optimizer), sort_keys=True)
        index = self._texts.setdefault(text, len(self._texts))
        lr = tuple(float(group.get("lr", 0.0)) for group in optimizer.param_groups)
        self._steps.append(StepTrace(ordinal, index, lr, self._backwards))

    # -- the ends of steps -----------------------------------------------------------------------

    def stepped(self) -> bool:
        """A step of the training has ended; return whether the wall time of the plan is over."""
        if not self._is_on:
            return False
        self._ended += 1
        if self._ended == 1:
            self._first_ns = monotonic_ns()
            self._safely(lambda: self._rng_first.update(digest.generators()))
        if self._ended in (1, _EARLY_STEPS):
            self._held = self._models() or self._held
        if self._ended == _EARLY_STEPS:
            self._safely(lambda: self._early.update(buffers_of(self._held)))
        if self._ended == self._plan.trace:
            self.finish("steps")
        return self._is_on and monotonic_ns() - self._first_ns >= self._plan.trace_s * _NS

    @property
    def is_over(self) -> bool:
        """Tell whether all has been recorded that was asked for."""
        return self._plan.trace is not None and not self._is_on

    def finish(self, ended: str) -> None:
        """Write what was recorded; once. ended: see ``TrainingTrace``."""
        if self._is_on:
            if self._ended or self._backwards:  # else it trains nothing: a launcher of ranks
                self._safely(lambda: self._write(ended))
            self._is_on = False
            self._optimizers.clear()
            self._held = ()

    def _write(self, ended: str) -> None:
        self._read_losses()
        batches, epochs = self._batches.told()
        models = self._models() or self._held
        trace = TrainingTrace(
            steps_ended=self._ended,
            ended=ended,
            batches=batches,
            epochs=epochs,
            losses=tuple(self._losses),
            steps=tuple(self._steps),
            hyperparameters=tuple(self._texts),
            parameters=tuple(self._moved()),
            gradients=tuple(self._gradients),
            buffers_early=self._early,
            buffers=buffers_of(models),
            state_keys=state_keys(models),
            rng_first=self._rng_first,
            rng=digest.generators(),
        )
        self._recorder.recording.add(frames.encode_json("trac", trace.to_dict()))
        self._recorder.recording.flush()

    def _moved(self) -> list[ParameterTrace]:
        found = []
        for optimizer, ordinal in self._optimizers.values():
            for index, one in enumerate(_parameters(optimizer)):
                before, now = self._before.get((ordinal, index)), digest.fingerprint(one)
                dtype = str(one.dtype).removeprefix("torch.")
                shape = tuple(map(int, one.shape))
                moved = before is not None and before != now
                found.append(ParameterTrace(ordinal, index, shape, dtype, moved, now[0], now[1]))
        return found

    def _safely(self, does: Callable[[], None]) -> None:
        """Do it; where that fails the recording is over, and the record says why."""
        try:
            does()
        except Exception as error:
            self._is_on = False
            self._recorder.fault("trace", error)


def _parameters(optimizer: Any) -> list[Any]:
    own = [one for group in optimizer.param_groups for one in group["params"]]
    return own[:_MOST_PARAMETERS]


def _hyperparameters(optimizer: Any) -> list[dict[str, Any]]:
    """Return what each group of an optimizer is set to, without rates and ways of computing."""
    return [
        {
            "class": type(optimizer).__name__,
            "parameters": len(group["params"]),
            **{
                str(name): _plain(value)
                for name, value in group.items()
                if name not in _NOT_NUMERICS
            },
        }
        for group in optimizer.param_groups
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, sys.modules["torch"].Tensor) and value.numel() == 1:
        return float(value)
    return type(value).__name__
