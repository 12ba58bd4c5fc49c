"""Single changes that a trial tries, each applied before the script's own code can run.

One function per change. It is given a ``Change``, makes its patches through it (so that they are
undone with all others), and says with ``acted`` each time that the change made a difference: a
change that made none proves nothing, and the report must be able to tell.
"""

from __future__ import annotations

import functools
import gc
import inspect
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from hotlap.inject.conditions import attention, loader_settings, recomputation
from hotlap.inject.conditions.change import Change
from hotlap.probe.recorder import Recorder
from hotlap.runs import frames
from hotlap.sites.patches import Patches


def detect_anomaly(change: Change) -> None:
    """Set the anomaly mode of autograd; the script's own switching is passed over."""
    torch = sys.modules["torch"]
    own = torch.set_anomaly_enabled
    wanted = bool(change.value)

    @functools.wraps(own)
    def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> Any:
        if bool(mode) != wanted:
            change.acted(f"the script's switching it {'on' if mode else 'off'} was passed over")
        return own(wanted, check_nan)

    change.replace(torch, "set_anomaly_enabled", set_anomaly_enabled)
    if wanted and not torch.is_anomaly_enabled():
        own(True, True)
        change.acted("switched on")


def torch_threads(change: Change) -> None:
    """Set how many threads an operator uses in the training process."""
    _set_threads(change, for_workers=False)
    torch = sys.modules["torch"]
    before = torch.get_num_threads()
    torch.set_num_threads(int(change.value))
    if torch.get_num_threads() != before:
        change.acted(f"{before} before, {torch.get_num_threads()} now")


def worker_threads(change: Change) -> None:
    """Set how many threads an operator uses in a loader's worker."""
    _set_threads(change, for_workers=True)


def _set_threads(change: Change, for_workers: bool) -> None:
    torch = sys.modules["torch"]
    own = torch.set_num_threads
    wanted = int(change.value)

    @functools.wraps(own)
    def set_num_threads(threads: int) -> None:
        # Workers of a loader are daemons; what a script starts itself for training is none.
        if bool(multiprocessing.current_process().daemon) is not for_workers:
            own(threads)
            return
        own(wanted)
        if threads != wanted:
            change.acted(f"{threads} were asked for, {wanted} are used")
        cv2 = sys.modules.get("cv2")
        if for_workers and cv2 is not None:
            cv2.setNumThreads(wanted)

    change.replace(torch, "set_num_threads", set_num_threads)


def flush_denormal(change: Change) -> None:
    """Let the processor take numbers too small for full precision for zero."""
    if sys.modules["torch"].set_flush_denormal(bool(change.value)):
        change.acted("set before the first step")
    else:
        change.note("this processor has no such switch")


def zero_grad_set_to_none(change: Change) -> None:
    """Let ``zero_grad`` drop gradients, or fill them with zeros."""
    torch = sys.modules["torch"]
    wanted = bool(change.value)
    for owner in (torch.optim.Optimizer, torch.nn.Module):
        own = owner.zero_grad

        def zero_grad(self: Any, set_to_none: bool = True, _own: Callable[..., Any] = own) -> Any:
            if bool(set_to_none) != wanted:
                change.acted(f"called with {set_to_none}, done with {wanted}")
            return _own(self, set_to_none=wanted)

        change.replace(owner, "zero_grad", functools.wraps(own)(zero_grad))


def fused(change: Change) -> None:
    """Let optimizers that can do so update all their parameters in one kernel."""
    _optimizer_argument(change, "fused", "foreach")


def foreach(change: Change) -> None:
    """Let optimizers that can do so update their parameters in groups."""
    _optimizer_argument(change, "foreach", "fused")


def _optimizer_argument(change: Change, name: str, other: str) -> None:
    optim = sys.modules["torch"].optim
    found = [one for one in vars(optim).values() if inspect.isclass(one)]
    for owner in dict.fromkeys(found):
        own = vars(owner).get("__init__")
        if own is None or owner is optim.Optimizer:
            continue
        signature = inspect.signature(own)
        if name in signature.parameters:
            wrapped = _with_argument(change, own, signature, (name, other))
            change.replace(owner, "__init__", wrapped)


def _with_argument(
    change: Change, own: Callable[..., None], signature: inspect.Signature, names: tuple[str, str]
) -> Callable[..., None]:
    name, other = names

    @functools.wraps(own)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        params = given.arguments.get("params")
        if params is not None and not isinstance(params, (list, tuple, dict)):
            params = given.arguments["params"] = list(params)  # it may be needed twice
        before = {key: given.arguments.get(key) for key in names}
        given.arguments[name] = change.value
        if change.value and other in signature.parameters:
            given.arguments[other] = None
        try:
            own(*given.args, **given.kwargs)
        except (RuntimeError, ValueError) as error:
            change.note(f"{type(self).__name__} refused it: {' '.join(str(error).split())[:200]}")
            for key, value in before.items():
                if key in signature.parameters:
                    given.arguments[key] = value
            own(*given.args, **given.kwargs)
            return
        if bool(before[name]) != bool(change.value):
            change.acted(f"{type(self).__name__} was made with {name}={change.value}")

    return __init__


def no_grad_evaluation(change: Change) -> None:
    """Evaluate without recording for gradients: outermost calls of models while they evaluate."""
    torch = sys.modules["torch"]
    own = torch.nn.Module.__call__
    timeline = change.recorder.timeline
    is_compiling = torch.compiler.is_compiling
    is_grad_enabled, no_grad = torch.is_grad_enabled, torch.no_grad

    @functools.wraps(own)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return own(self, *args, **kwargs)
        stretch = timeline.stretch
        evaluates = stretch is not None and stretch.explicit and not getattr(self, "training", True)
        if not evaluates or not is_grad_enabled() or timeline.trains_in_evaluation(self):
            return own(self, *args, **kwargs)
        change.acted("a forward pass in evaluation ran without")
        with no_grad():
            return own(self, *args, **kwargs)

    if change.value:
        change.replace(torch.nn.Module, "__call__", call)


def collector(change: Change) -> None:
    """Stop Python's cycle collector (``disable``), or spare it what lives since start (``freeze``).

    Done when the first step has ended: until then a script makes what stays.
    """

    def when_stepped() -> None:
        gc.collect()
        gc.freeze()
        if change.value == "disable":
            gc.disable()
            change.acted("disabled after the first step")
        else:
            change.acted(f"{gc.get_freeze_count()} objects are spared")

    change.after_first_step(when_stepped)


def stdout(change: Change) -> None:
    """Drop what the training process prints."""
    change.replace(sys, "stdout", _Nowhere(change, sys.stdout))


class _Nowhere:
    """A text stream that takes everything and writes nothing."""

    def __init__(self, change: Change, own: Any) -> None:
        self._change = change
        self._own = own
        self.encoding = getattr(own, "encoding", "utf-8")
        self.errors = getattr(own, "errors", "strict")
        self.buffer = getattr(own, "buffer", None)

    def write(self, text: str) -> int:
        """Take a text."""
        self._change.acted("texts were dropped")
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Take several."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Say what the real one says: progress bars ask."""
        return bool(self._own.isatty())

    def fileno(self) -> int:
        """Return the real one's descriptor."""
        return int(self._own.fileno())

    def writable(self) -> bool:
        """Say so."""
        return True

    def readable(self) -> bool:
        """Say that it is not."""
        return False


def saves(change: Change) -> None:
    """Pass over ``torch.save``."""
    torch = sys.modules["torch"]
    own = torch.save

    @functools.wraps(own)
    def save(*_args: Any, **_kwargs: Any) -> None:
        change.acted("calls of torch.save were passed over")

    change.replace(torch, "save", save)
    change.replace(torch.serialization, "save", save)


def default_dtype(change: Change) -> None:
    """Keep the default type of new tensors (``float32``), whatever the script sets."""
    torch = sys.modules["torch"]
    own = torch.set_default_dtype
    wanted = getattr(torch, str(change.value))

    @functools.wraps(own)
    def set_default_dtype(d: Any) -> None:
        if d != wanted:
            change.acted(f"{d} was asked for, {wanted} is used")
        own(wanted)

    change.replace(torch, "set_default_dtype", set_default_dtype)
    own(wanted)


def matmul_precision(change: Change) -> None:
    """Set how precisely float32 matrices are multiplied: ``highest``, ``high`` or ``medium``."""
    torch = sys.modules["torch"]
    own = torch.set_float32_matmul_precision
    before = torch.get_float32_matmul_precision()

    @functools.wraps(own)
    def set_float32_matmul_precision(precision: str) -> None:
        if precision != change.value:
            change.acted(f"{precision} was asked for, {change.value} is used")
        own(change.value)

    change.replace(torch, "set_float32_matmul_precision", set_float32_matmul_precision)
    own(str(change.value))
    if before != change.value:
        change.acted(f"{before} before, {change.value} now")


SETTINGS: Final[dict[str, Callable[[Change], None]]] = {
    "activation_checkpointing": recomputation.activation_checkpointing,
    "attention_weights": attention.attention_weights,
    "default_dtype": default_dtype,
    "detect_anomaly": detect_anomaly,
    "flush_denormal": flush_denormal,
    "foreach": foreach,
    "fused": fused,
    "gc": collector,
    "matmul_precision": matmul_precision,
    "no_grad_evaluation": no_grad_evaluation,
    "persistent_workers": loader_settings.argument,
    "prefetch_factor": loader_settings.argument,
    "saves": saves,
    "stdout": stdout,
    "torch_threads": torch_threads,
    "worker_threads": worker_threads,
    "workers": loader_settings.argument,
    "zero_grad_set_to_none": zero_grad_set_to_none,
}
"""What a trial may change, by the name in ``TrialPlan.settings``."""


class Settings:
    """The changes of one trial, and the proof that they acted.

    asked: name and value of each, ``TrialPlan.settings``.
    """

    def __init__(self, recorder: Recorder, patches: Patches, asked: Mapping[str, Any]) -> None:
        self._recorder = recorder
        # Workers last, so that it is outermost: whether there are any decides on the others.
        names = sorted(asked, key=lambda name: name == "workers")
        self._changes = [Change(name, asked[name], patches, recorder) for name in names]
        self._written: dict[str, Any] = {}
        self._pid = os.getpid()

    def apply(self) -> None:
        """Make all changes; one that fails says so and leaves the others alone."""
        for change in self._changes:
            make = SETTINGS.get(change.name)
            if make is None:
                change.note(f"this hotlap knows no change {change.name!r}")
                continue
            try:
                make(change)
            except Exception as error:
                change.note(f"it could not be made: {type(error).__name__}: {error}"[:300])

    def first_step_ended(self) -> None:
        """Make what waits for the end of the first step."""
        for change in self._changes:
            change.stepped()

    def write(self) -> None:
        """Write the proofs, if they have changed; in a worker into its own file."""
        proofs = {change.name: change.proof() for change in self._changes}
        if os.getpid() != self._pid:
            # Only what acted: the training process says the rest.
            proofs = {one.name: one.proof() for one in self._changes if one.acted_here()}
        if proofs and proofs != self._written:
            self._written = proofs
            self._recorder.add(frames.encode_json("sett", proofs))
